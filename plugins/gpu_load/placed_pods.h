// Which pods with GPUs are on each node, and since when.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_PLACED_PODS_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_PLACED_PODS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/node_table.h"

namespace outboard::gpu_load {

// Forwarded from a ClusterObserver. A pod's time on its node starts when this process sees it
// placed, or when the kubelet starts it, if later. For pods placed before a restart it is the
// kubelet's start time, or else the creation time.
//
// Threading: thread-compatible.
class PlacedPods {
 public:
  explicit PlacedPods(const sdk::GpuResources* gpus) : gpus_(gpus) {}

  void Clear();
  void Added(const sdk::PodRecord& pod, sdk::Slot slot, absl::Time now);
  void Removed(const sdk::PodRecord& pod, sdk::Slot slot);
  void Changed(const sdk::PodRecord& pod);
  void Gone(const sdk::PodRecord& pod);

  // GPUs of the node's pods whose time there started after `since`.
  int64_t GpusPlacedAfter(sdk::Slot slot, absl::Time since) const;

 private:
  struct Placed {
    std::string uid;
    absl::Time since;
    int64_t gpus = 0;
  };
  int64_t GpusOf(const sdk::PodRecord& pod) const;

  const sdk::GpuResources* const gpus_;
  std::vector<std::vector<Placed>> by_slot_;
  // Known pods with GPUs, by uid: the time of their placement; infinite: not placed. An update of a
  // pod must not count as a new pod.
  absl::flat_hash_map<std::string, absl::Time> known_;
};

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_PLACED_PODS_H_
