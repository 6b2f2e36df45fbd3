// GPU memory that pods ask for and nodes have, in MiB.
#ifndef OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_
#define OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_facts.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::workload_strategy_scorer {

// Annotations of pods: ours for the whole pod, KAI's for each of its devices.
inline constexpr char kMemoryAnnotation[] = "accelerator.sched.io/gpu-memory-gb";  // GB.
inline constexpr char kKaiMemoryAnnotation[] = "gpu-memory";                       // MiB.
inline constexpr char kKaiDevicesAnnotation[] = "gpu-fraction-num-devices";
// Label of nodes, as GPU Feature Discovery writes it: GPUs that are there, however they are shared.
inline constexpr char kCountLabel[] = "nvidia.com/gpu.count";

// An extended resource that is GPU memory.
struct MemoryResource {
  std::string name;
  double mib = 1;  // Of one unit.
  bool per_gpu = false;
};

// What a pod takes: memory, and whole GPUs with all that they have.
struct MemoryDemand {
  double mib = 0;
  int64_t whole_gpus = 0;
};

// Threading: immutable after Read. Lifetime: a value. Errors: problems in the reader of args.
class GpuMemory {
 public:
  // The arguments `gpuMemoryResources` and `gpuResourceNames`.
  static GpuMemory Read(const sdk::ArgsObject& root);

  const sdk::GpuResources& gpus() const { return gpus_; }
  // The first of: annotations, resources that are GPU memory, whole GPUs. `malformed` may be null.
  MemoryDemand DemandOf(const v1alpha1::Pod& pod, sdk::MalformedValues* malformed) const;

 private:
  sdk::GpuResources gpus_;
  std::vector<MemoryResource> resources_;
};

// Part of a JSON schema: the argument `gpuMemoryResources`.
extern const char kGpuMemoryResourcesSchema[];

// What a node has.
struct NodeMemory {
  std::optional<double> mib_per_gpu;  // None: unknown.
  std::optional<int64_t> gpus;        // As GPU Feature Discovery counts; none: as allocatable.
};
NodeMemory ReadNodeMemory(const sdk::StringMap& labels,
                          std::vector<sdk::MalformedLabel>* malformed);

}  // namespace outboard::workload_strategy_scorer

#endif  // OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_GPU_MEMORY_H_
