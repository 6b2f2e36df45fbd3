#include "plugins/topology_aware_gpu_gate/parallelism.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "plugin_host/sdk/pod_parts.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

// Far above any real system; a bound for user input.
constexpr int64_t kMaxProcesses = int64_t{1} << 20;
constexpr size_t kMaxCommand = 16 * 1024;
// Word separators in a shell line.
constexpr char kSeparators[] = " \t\r\n\"'[]{}(),;&|";

// Labels of Kubeflow's operators, new and old, on pods of a PyTorchJob.
constexpr char kOperatorLabel[] = "training.kubeflow.org/operator-name";
constexpr char kPyTorchOperator[] = "pytorchjob-controller";
constexpr char kOldOperatorLabel[] = "controller-name";
constexpr char kOldPyTorchOperator[] = "pytorch-operator";
constexpr char kPyTorchJob[] = "PyTorchJob";

// Programs and modules that start one process per GPU.
constexpr const char* kLaunchers[] = {"torchrun", "torch.distributed.run",
                                      "torch.distributed.launch", "deepspeed"};
// Their flags for the number of processes per node, without leading dashes; `_` equals `-`.
constexpr const char* kProcessFlags[] = {"nproc-per-node", "num-gpus"};
// vLLM, SGLang, Text Generation Inference, Megatron.
constexpr const char* kTensorFlags[] = {
    "tensor-parallel-size",      "tp", "tp-size", "num-shard", "sharded-tp",
    "tensor-model-parallel-size"};
// Variables that launchers set or read.
constexpr const char* kWorldSizes[] = {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "PET_NPROC_PER_NODE",
                                       "NPROC_PER_NODE"};
constexpr const char* kTensorSizes[] = {"TENSOR_PARALLEL_SIZE"};

template <size_t n>
bool IsOneOf(absl::string_view word, const char* const (&words)[n]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

enum class Several { kNo, kYes, kUnknown };
Several ReadSeveral(absl::string_view text) {
  // torchrun's values for one process per GPU.
  if (text == "gpu" || text == "auto") return Several::kYes;
  const std::optional<int64_t> processes = sdk::ParseCount(text, kMaxProcesses);
  if (!processes) return Several::kUnknown;
  return *processes >= 2 ? Several::kYes : Several::kNo;
}

// `--nproc_per_node` becomes `nproc-per-node`; empty if the argument is not a flag.
std::string FlagName(absl::string_view word) {
  if (!absl::ConsumePrefix(&word, "-")) return "";
  absl::ConsumePrefix(&word, "-");
  std::string name(word);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::optional<Parallelism> ParseParallelism(absl::string_view text) {
  Parallelism result;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    if (absl::EqualsIgnoreCase(word, "ddp")) {
      result.data = true;
    } else if (absl::EqualsIgnoreCase(word, "tensor-parallel")) {
      result.tensor = true;
    } else if (!absl::EqualsIgnoreCase(text, "none")) {
      return std::nullopt;
    }
  }
  return result;
}

bool LabelIs(const v1beta1::Pod& pod, const char* key, absl::string_view wanted) {
  const std::string* value = sdk::FindValue(pod.labels(), key);
  return value != nullptr && *value == wanted;
}

// Calls read(text) for the label, then for the annotation, until one is valid.
template <typename Fn>
auto ReadEither(const v1beta1::Pod& pod, const char* key, absl::string_view wanted,
                sdk::MalformedValues* malformed, Fn read) -> decltype(read("")) {
  for (const sdk::StringMap* map : {&pod.labels(), &pod.annotations()}) {
    const std::string* text = sdk::FindValue(*map, key);
    if (text == nullptr) continue;
    if (auto value = read(*text)) return value;
    if (malformed != nullptr) {
      malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, *text, wanted);
    }
  }
  return std::nullopt;
}

}  // namespace

Parallelism ParallelismOfCommand(absl::string_view command) {
  bool launcher = false;
  Several processes = Several::kUnknown;  // Flags take precedence over variables.
  bool world = false;
  Parallelism result;
  const std::vector<absl::string_view> words = absl::StrSplit(
      command.substr(0, kMaxCommand), absl::ByAnyChar(kSeparators), absl::SkipEmpty());
  for (size_t i = 0; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    const bool has_value = words[i].find('=') != absl::string_view::npos;
    const std::string flag = FlagName(sides.first);
    if (flag.empty()) {
      if (has_value && IsOneOf(sides.first, kWorldSizes)) {
        world |= ReadSeveral(sides.second) == Several::kYes;
        continue;
      }
      if (has_value && IsOneOf(sides.first, kTensorSizes)) {
        result.tensor |= ReadSeveral(sides.second) == Several::kYes;
        continue;
      }
      const size_t slash = words[i].rfind('/');
      launcher |= IsOneOf(slash == absl::string_view::npos ? words[i] : words[i].substr(slash + 1),
                          kLaunchers);
      continue;
    }
    const bool counts_processes = IsOneOf(flag, kProcessFlags);
    const bool counts_shards = IsOneOf(flag, kTensorFlags);
    if (!counts_processes && !counts_shards) continue;
    const absl::string_view value =
        has_value ? sides.second : (i + 1 < words.size() ? words[i + 1] : absl::string_view());
    const Several several = ReadSeveral(value);
    if (counts_processes) processes = several;
    if (counts_shards) result.tensor |= several == Several::kYes;
  }
  result.data = world || (launcher && processes != Several::kNo);
  if (launcher && processes == Several::kNo) result.data = false;
  return result;
}

Parallelism ParallelismOfContainer(const v1beta1::Container& container) {
  // Variables in front, as for env(1): the program's flags take precedence over them.
  std::string line;
  for (const auto& [name, value] : container.env()) absl::StrAppend(&line, name, "=", value, "\n");
  for (const auto* words : {&container.command(), &container.args()}) {
    for (const std::string& word : *words) {
      if (line.size() > kMaxCommand) break;
      absl::StrAppend(&line, word, "\n");
    }
  }
  return line.empty() ? Parallelism() : ParallelismOfCommand(line);
}

Parallelism ParallelismOfPod(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) {
  if (const auto said = ReadEither(pod, kParallelismKey, "ddp, tensor-parallel or none", malformed,
                                   ParseParallelism)) {
    return *said;
  }
  Parallelism result;
  for (const v1beta1::Container& container : pod.containers()) {
    const Parallelism of_container = ParallelismOfContainer(container);
    result.data |= of_container.data;
    result.tensor |= of_container.tensor;
  }
  const auto size =
      ReadEither(pod, kTensorParallelSizeKey, "a number of GPUs", malformed,
                 [](absl::string_view text) { return sdk::ParseCount(text, kMaxProcesses); });
  if (size) result.tensor = *size >= 2;
  result.data |= (pod.has_controller() && pod.controller().kind() == kPyTorchJob) ||
                 LabelIs(pod, kOperatorLabel, kPyTorchOperator) ||
                 LabelIs(pod, kOldOperatorLabel, kOldPyTorchOperator);
  return result;
}

std::vector<std::string> ParallelismFields() {
  std::vector<std::string> fields;
  for (const char* key : {kParallelismKey, kTensorParallelSizeKey})
    fields.push_back(sdk::AnnotationField(key));
  fields.push_back("Pod.spec.containers[*].command");
  fields.push_back("Pod.spec.containers[*].args");
  for (const auto& names : {absl::MakeSpan(kWorldSizes), absl::MakeSpan(kTensorSizes)}) {
    for (const char* name : names)
      fields.push_back(absl::StrCat("Pod.spec.containers[*].env['", name, "']"));
  }
  return fields;
}

}  // namespace outboard::topology_aware_gpu_gate
