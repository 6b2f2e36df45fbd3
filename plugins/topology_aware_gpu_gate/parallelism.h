// How a pod uses several GPUs at once: data parallel (PyTorch DDP), tensor parallel, or neither.
#ifndef OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_
#define OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/label_values.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::topology_aware_gpu_gate {

// Labels or annotations of pods; the label comes first.
inline constexpr char kParallelismKey[] = "accelerator.sched.io/parallelism";
inline constexpr char kTensorParallelSizeKey[] = "tensor-parallel-size";
// Annotation: what the container runs, with variables in front. The contract does not carry
// commands and variables themselves.
inline constexpr char kCommandAnnotation[] = "outboard/command";

struct Parallelism {
  bool data = false;
  bool tensor = false;
  bool any() const { return data || tensor; }
  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

// Of a command line (in words, as a shell's, or as JSON), for example `NCCL_DEBUG=INFO torchrun
// --nproc-per-node=8 train.py` or `["vllm", "serve", "-tp", "4"]`. A launcher that is told to start
// a single process a node is not data parallel. Pure.
Parallelism ParallelismOfCommand(absl::string_view command);

// What the pod says of itself decides; else what its labels, its owner and its command tell.
// `malformed` may be null.
Parallelism ParallelismOfPod(const v1alpha1::Pod& pod, sdk::MalformedValues* malformed);
// For PluginDescriptor::needed_fields.
std::vector<std::string> ParallelismFields();

}  // namespace outboard::topology_aware_gpu_gate

#endif  // OUTBOARD_PLUGINS_TOPOLOGY_AWARE_GPU_GATE_PARALLELISM_H_
