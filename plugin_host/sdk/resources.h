// A pod's requests, as Kubernetes counts them.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_RESOURCES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_RESOURCES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

// Amounts by resource. Absent differs from zero only for `has_cpu` and `has_memory`, where
// assumptions depend on it.
struct Resources {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  int64_t ephemeral_storage_bytes = 0;
  bool has_cpu = false;
  bool has_memory = false;
  bool has_ephemeral_storage = false;
  // Every other resource by full name, also with amount 0. Sorted, so that reasons have a fixed
  // order.
  std::map<std::string, int64_t, std::less<>> extended;

  // The amount of a resource by its Kubernetes name; 0 if absent.
  int64_t Get(absl::string_view name) const;
  friend bool operator==(const Resources&, const Resources&) = default;
};

// Scoring's assumption for a container without CPU or memory requests.
inline constexpr int64_t kDefaultCpuMillis = 100;
inline constexpr int64_t kDefaultMemoryBytes = 200 * 1024 * 1024;

// How to count; the defaults are those of Filter for a pending pod.
struct PodRequestsOptions {
  // Include allocated and actual amounts of in-place resizes (pods on nodes).
  bool use_status = false;
  // Ignore spec.resources.
  bool skip_pod_level = false;
  // Assume these for containers that name none.
  std::optional<int64_t> missing_cpu_millis;
  std::optional<int64_t> missing_memory_bytes;
};

// The effective request of a pod: containers summed, init containers' highest, sidecars, pod-level
// requests, overhead.
Resources ComputePodRequests(const v1beta1::Pod& pod, const PodRequestsOptions& options = {});

// The same for one extended resource alone; 0 if absent.
int64_t ExtendedRequestOf(const v1beta1::Pod& pod, const std::string& name);

// True if spec.resources.requests names a resource that Kubernetes supports there (cpu, memory,
// hugepages-*).
bool HasPodLevelRequests(const v1beta1::Pod& pod);

// A pod's usage of a node: its requests, and CPU and memory with the assumed defaults where absent.
struct PodUsage {
  Resources requests;
  int64_t nonzero_cpu_millis = 0;
  int64_t nonzero_memory_bytes = 0;
};
PodUsage ComputePodUsage(const v1beta1::Pod& pod);

// Kubernetes' classes of resource names.
bool IsNativeResourceName(absl::string_view name);  // Without a slash, or in kubernetes.io/.
// Neither native nor requests.*, and a valid qualified name.
bool IsExtendedResourceName(absl::string_view name);
// Extended, hugepages-, kubernetes.io/, attachable-volumes-.
bool IsScalarResourceName(absl::string_view name);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_RESOURCES_H_
