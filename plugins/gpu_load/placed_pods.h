// Which pods with GPUs are on which node, and since when.
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

// Told what a ClusterObserver is told. A pod's time on its node begins when it is placed there as
// far as this process saw it, or when the kubelet took it if that is later; of a pod that was there
// before, after a restart, it is the kubelet's word, or else its creation.
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

  // GPUs of the pods on a node whose time there began after `since`.
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
  // Pods with GPUs that are known, by uid: since when they are placed; infinite: they wait. An
  // update of a pod must not make it a new one.
  absl::flat_hash_map<std::string, absl::Time> known_;
};

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_PLACED_PODS_H_
