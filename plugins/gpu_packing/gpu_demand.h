// The GPUs that pods request and have: whole ones, and KAI's and HAMi's shares.
#ifndef OUTBOARD_PLUGINS_GPU_PACKING_GPU_DEMAND_H_
#define OUTBOARD_PLUGINS_GPU_PACKING_GPU_DEMAND_H_

#include <set>
#include <string>
#include <vector>

#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/resources.h"
#include "plugins/gpu_packing/gpu_layout.h"

namespace outboard::gpu_packing {

// KAI's. Annotations are not arguments: a host declares its annotations before it has arguments.
inline constexpr char kFractionAnnotation[] = "gpu-fraction";
inline constexpr char kMemoryAnnotation[] = "gpu-memory";
inline constexpr char kDevicesAnnotation[] = "gpu-fraction-num-devices";
inline constexpr char kGroupLabel[] = "runai-gpu-group";

// Reads pods with the arguments' resource names.
class GpuDemandReader {
 public:
  static GpuDemandReader Read(const sdk::ArgsObject& root);

  const sdk::GpuResources& gpus() const { return gpus_; }
  // `requests` are the pod's. A malformed value counts as absent. `claims`: null, or the claims of
  // other pods of a node, which do not count again (GpuClaims::DemandOf).
  PodGpus Demand(const v1beta1::Pod& pod, const sdk::Resources& requests,
                 sdk::MalformedValues* malformed, std::set<std::string>* claims = nullptr) const;
  // The GPUs that a pod is known to use; empty: unknown.
  std::vector<std::string> Devices(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const;

 private:
  sdk::GpuResources gpus_;
  std::string memory_resource_;
  std::string memory_percentage_resource_;
  std::string cores_resource_;
  std::string reservation_namespace_;
};

// `0.25` as 250, rounded up. nullopt unless above 0 and at most 1.
std::optional<int32_t> ParseFraction(absl::string_view text);
// The GPUs in HAMi's annotation; nullopt if it is malformed, or has more than 128.
std::optional<std::vector<std::string>> ParseAllocatedDevices(absl::string_view text);

}  // namespace outboard::gpu_packing

#endif  // OUTBOARD_PLUGINS_GPU_PACKING_GPU_DEMAND_H_
