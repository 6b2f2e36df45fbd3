// What of a pod's requests the kubelet allocates exclusively, and so aligns to NUMA zones.
#ifndef OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_REQUESTS_H_
#define OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_REQUESTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "outboard/v1beta1/types.pb.h"

namespace outboard::gpu_model_match {

// Larger amounts of pods and zones count as this: a pebibyte, in bytes.
inline constexpr int64_t kMaxNumaAmount = int64_t{1} << 50;

// A part of a pod that the kubelet aligns at once: a container, or the pod with scope `pod`.
struct NumaPart {
  enum class Kind { kPod, kInitContainer, kSidecar, kContainer };
  Kind kind = Kind::kContainer;
  // By name; `cpu` in millis. Only amounts above 0.
  std::vector<std::pair<std::string, int64_t>> amounts;
  friend bool operator==(const NumaPart&, const NumaPart&) = default;
};

struct NumaRequests {
  // Parts with exclusive resources, in the order in which the kubelet starts them.
  std::vector<NumaPart> containers;
  NumaPart pod;  // the most that all of them use at one time
  bool empty() const { return containers.empty(); }
  friend bool operator==(const NumaRequests&, const NumaRequests&) = default;
};

// As the kubelet's CPU, memory and device managers with their static policies count:
// - whole CPUs, memory and huge pages of containers of Guaranteed pods without pod-level resources;
// - every extended resource, of pods of any class;
// - not the pod's overhead.
// Pure.
NumaRequests NumaRequestsOf(const v1beta1::Pod& pod);

}  // namespace outboard::gpu_model_match

#endif  // OUTBOARD_PLUGINS_GPU_MODEL_MATCH_NUMA_REQUESTS_H_
