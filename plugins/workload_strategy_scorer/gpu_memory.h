// GPU memory of pods (requested) and nodes, in MiB.
#ifndef OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_
#define OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/facts.h"

namespace outboard::workload_strategy_scorer {

// Annotations of pods: ours is per pod, KAI's per device.
inline constexpr char kMemoryAnnotation[] = "accelerator.sched.io/gpu-memory-gb";  // GB.
inline constexpr char kKaiMemoryAnnotation[] = "gpu-memory";                       // MiB.
inline constexpr char kKaiDevicesAnnotation[] = "gpu-fraction-num-devices";

// An extended resource that is GPU memory.
struct MemoryResource {
  std::string name;
  double mib = 1;  // Per unit.
  bool per_gpu = false;
};

// A pod's demand: memory, and whole GPUs with all their memory.
struct MemoryDemand {
  double mib = 0;
  int64_t whole_gpus = 0;
};

// Threading: immutable after Read.
// Lifetime:  a value.
// Errors:    reported to the reader of args.
class GpuMemory {
 public:
  // Reads the arguments `gpuMemoryResources` and `gpuResourceNames`.
  static GpuMemory Read(const sdk::ArgsObject& root);

  const sdk::GpuResources& gpus() const { return gpus_; }
  // The first of: annotations, resources that are GPU memory, whole GPUs. `malformed` may be null.
  MemoryDemand DemandOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const;
  // What a placed pod has: memory that HAMi gave it; else, if it declares no memory, as many whole
  // GPUs as the kubelet or a scheduler gave it (`devices`); else its demand.
  MemoryDemand UseOf(const v1beta1::Pod& pod, const std::optional<sdk::GpuSet>& devices,
                     sdk::MalformedValues* malformed) const;

 private:
  sdk::GpuResources gpus_;
  std::vector<MemoryResource> resources_;
};

// Part of a JSON schema: the argument `gpuMemoryResources`.
extern const char kGpuMemoryResourcesSchema[];

// A node's GPU memory.
struct NodeMemory {
  std::optional<double> mib_per_gpu;  // nullopt: unknown.
  std::optional<int64_t> gpus;        // Physical ones, as published; nullopt: use allocatable.
};
NodeMemory NodeMemoryOf(const sdk::NodeFacts& facts);

}  // namespace outboard::workload_strategy_scorer

#endif  // OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_
