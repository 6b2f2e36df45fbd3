// How a pod uses several GPUs at once: data parallel (PyTorch DDP), tensor parallel, or neither.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::topology_aware_gpu_gate {

// Labels or annotations of pods; the label comes first.
inline constexpr char kParallelismKey[] = "accelerator.sched.io/parallelism";
inline constexpr char kTensorParallelSizeKey[] = "tensor-parallel-size";

struct Parallelism {
  bool data = false;
  bool tensor = false;
  bool any() const { return data || tensor; }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

// Reads a command line, for example `NCCL_DEBUG=INFO torchrun --nproc-per-node=8 train.py` or
// `vllm serve -tp 4`. A launcher that starts a single process per node is not data parallel. Pure.
Parallelism ParallelismOfCommand(absl::string_view command);
// Reads a container's command and arguments, one of which may be a shell line, and the variables
// that count processes.
Parallelism ParallelismOfContainer(const v1beta1::Container& container);

// The key kParallelismKey decides; without it the pod's labels, owner and containers.
// `malformed` may be null.
Parallelism ParallelismOfPod(const v1beta1::Pod& pod, sdk::MalformedValues* malformed);
// For PluginDescriptor::needed_fields.
std::vector<std::string> ParallelismFields();

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_
