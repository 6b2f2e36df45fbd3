#include "proto/workloads/workload_type.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace outboard::workloads {
namespace {

// A label that a controller puts on its pods.
struct LabelRule {
  const char* key;
  const char* value;  // null: any
  WorkloadType type;
};

// The first that matches decides between types other than training and inference.
constexpr LabelRule kLabelRules[] = {
    // Kubeflow training-operator, pkg/apis/kubeflow.org/v1/common_types.go: JobNameLabel. The
    // mpi-operator uses it too, also for its launcher, which a Job owns.
    {"training.kubeflow.org/job-name", nullptr, WorkloadType::kTraining},
    // JobSet, api/jobset/v1alpha2/jobset_types.go: JobSetNameKey. Its README: "HPC (e.g., MPI) and
    // AI/ML training workloads". Pods of Kubeflow's TrainJob are pods of a JobSet.
    {"jobset.sigs.k8s.io/jobset-name", nullptr, WorkloadType::kTraining},
    // KServe, pkg/constants/constants.go: InferenceServicePodLabelKey.
    {"serving.kserve.io/inferenceservice", nullptr, WorkloadType::kInference},
    // KServe, pkg/controller/v1alpha1/llmisvc/workload_single_node.go: LLMInferenceService.
    {"app.kubernetes.io/part-of", "llminferenceservice", WorkloadType::kInference},
    // LeaderWorkerSet, api/leaderworkerset/v1/leaderworkerset_types.go: SetNameLabelKey. Its
    // README: "AI/ML inference workloads, especially multi-host".
    {"leaderworkerset.sigs.k8s.io/name", nullptr, WorkloadType::kInference},
    // KubeRay, controllers/ray/common/pod.go: BuildPod, only for a RayService.
    {"ray.io/serve", nullptr, WorkloadType::kInference},
    // KubeRay, controllers/ray/common/pod.go: labelPod. A RayCluster, also a RayJob's, says
    // nothing about its tasks.
    {"ray.io/cluster", nullptr, WorkloadType::kBatch},
    // Volcano, pkg/apis/batch/v1alpha1/labels.go: JobNameKey.
    {"volcano.sh/job-name", nullptr, WorkloadType::kBatch},
    // Argo Workflows, workflow/common/common.go: LabelKeyWorkflow.
    {"workflows.argoproj.io/workflow", nullptr, WorkloadType::kBatch},
    // Apache Spark, deploy/k8s/Constants.scala: SPARK_APP_ID_LABEL. Executors are owned by the
    // driver's pod.
    {"spark-app-selector", nullptr, WorkloadType::kBatch},
    // slurm-bridge, internal/wellknown/labels.go: LabelExternalJobId.
    {"scheduler.slinky.slurm.net/slurm-jobid", nullptr, WorkloadType::kBatch},
    // Kubeflow notebook-controller, controllers/notebook_controller.go: generateStatefulSet.
    {"notebook-name", nullptr, WorkloadType::kInteractive},
    // JupyterHub's kubespawner, spawner.py: _build_pod_labels.
    {"component", "singleuser-server", WorkloadType::kInteractive},
    // Knative Serving, pkg/reconciler/revision/resources/meta.go: makeLabels.
    {"serving.knative.dev/revision", nullptr, WorkloadType::kService},
};

// Programs and modules of Python in a container's command.
struct ProgramRule {
  const char* name;
  WorkloadType type;
};
constexpr ProgramRule kProgramRules[] = {
    // PyTorch, torch/distributed: run.py (torchrun), launch.py.
    {"torchrun", WorkloadType::kTraining},
    {"torch.distributed.run", WorkloadType::kTraining},
    {"torch.distributed.launch", WorkloadType::kTraining},
    {"deepspeed", WorkloadType::kTraining},   // DeepSpeed, bin/deepspeed
    {"accelerate", WorkloadType::kTraining},  // Hugging Face, src/accelerate/commands
    {"horovodrun", WorkloadType::kTraining},  // Horovod, horovod/runner
    {"vllm", WorkloadType::kInference},       // vLLM, vllm/entrypoints/cli
    {"vllm.entrypoints.openai.api_server", WorkloadType::kInference},
    {"sglang.launch_server", WorkloadType::kInference},      // SGLang, python/sglang
    {"text-generation-launcher", WorkloadType::kInference},  // Text Generation Inference, launcher/
    {"trtllm-serve", WorkloadType::kInference},              // TensorRT-LLM, tensorrt_llm/commands
    {"tritonserver", WorkloadType::kInference},              // Triton Inference Server
};
// A longer command is a script, of which the beginning decides. Bytes of one container.
constexpr size_t kMaxCommand = 4096;
constexpr char kBetweenWords[] = " \t\r\n\"'[]{}(),;&|=";

// Kinds of controllers that say neither training nor inference.
struct KindRule {
  const char* kind;
  WorkloadType type;
};
constexpr KindRule kKindRules[] = {
    {"Job", WorkloadType::kBatch},            // of batch and of batch.volcano.sh
    {"RayCluster", WorkloadType::kBatch},     // ray.io
    {"Workflow", WorkloadType::kBatch},       // argoproj.io
    {"ReplicaSet", WorkloadType::kService},   // of a Deployment, mostly
    {"StatefulSet", WorkloadType::kService},  // apps
    {"DaemonSet", WorkloadType::kService},    // apps
    {"ReplicationController", WorkloadType::kService},
};

bool Matches(const v1beta1::Pod& pod, const LabelRule& rule) {
  const auto label = pod.labels().find(rule.key);
  return label != pod.labels().end() && (rule.value == nullptr || label->second == rule.value);
}

bool HasOwnerOf(const v1beta1::Pod& pod, const WorkloadTraits& traits) {
  return pod.has_controller() && std::find(traits.owner_kinds.begin(), traits.owner_kinds.end(),
                                           pod.controller().kind()) != traits.owner_kinds.end();
}

bool HasPartOf(absl::string_view image_name, const WorkloadTraits& traits) {
  return std::any_of(traits.images.begin(), traits.images.end(),
                     [&](const std::string& part) { return absl::StrContains(image_name, part); });
}

// Calls match(type) for each known program in the container's command and arguments.
template <typename Fn>
void ForEachProgram(const v1beta1::Container& container, const Fn& match) {
  size_t left = kMaxCommand;
  for (const auto* texts : {&container.command(), &container.args()}) {
    for (const absl::string_view text : *texts) {
      const absl::string_view part = text.substr(0, left);
      left -= part.size();
      for (absl::string_view word :
           absl::StrSplit(part, absl::ByAnyChar(kBetweenWords), absl::SkipEmpty())) {
        if (const size_t slash = word.rfind('/'); slash != absl::string_view::npos)
          word.remove_prefix(slash + 1);
        for (const ProgramRule& rule : kProgramRules) {
          if (word == rule.name) match(rule.type);
        }
      }
    }
  }
}

// The type if exactly one matches.
WorkloadType OneOf(bool training, bool inference) {
  if (training == inference) return WorkloadType::kNone;
  return training ? WorkloadType::kTraining : WorkloadType::kInference;
}

}  // namespace

absl::string_view WorkloadTypeName(WorkloadType type) {
  switch (type) {
    case WorkloadType::kNone:
      return "none";
    case WorkloadType::kTraining:
      return "training";
    case WorkloadType::kInference:
      return "inference";
    case WorkloadType::kBatch:
      return "batch";
    case WorkloadType::kService:
      return "service";
    case WorkloadType::kInteractive:
      return "interactive";
  }
  return "none";
}

const WorkloadRules& DefaultWorkloadRules() {
  // Kinds of kubeflow.org, trainer.kubeflow.org and jobset.x-k8s.io; of serving.kserve.io and
  // leaderworkerset.x-k8s.io. Most of these do not own pods themselves; see kLabelRules.
  static const WorkloadRules& rules = *new WorkloadRules{
      {{"PyTorchJob", "TFJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob", "TrainJob", "JobSet"},
       {"train", "deepspeed", "megatron", "axolotl"}},
      {{"InferenceService", "LLMInferenceService", "LeaderWorkerSet"},
       {"inference", "serving", "vllm", "sglang", "tritonserver", "torchserve", "ollama",
        "lmdeploy", "llama.cpp"}}};
  return rules;
}

std::string ImageName(absl::string_view image) {
  image = image.substr(0, image.find('@'));
  const size_t slash = image.find('/');
  if (slash != absl::string_view::npos) {
    const absl::string_view first = image.substr(0, slash);
    // As container runtimes distinguish a registry from a part of the name.
    if (first == "localhost" || first.find_first_of(".:") != absl::string_view::npos)
      image.remove_prefix(slash + 1);
  }
  const size_t last = image.rfind('/');
  const size_t colon = image.find(':', last == absl::string_view::npos ? 0 : last);
  return absl::AsciiStrToLower(image.substr(0, colon));
}

WorkloadType RecognizeWorkload(const v1beta1::Pod& pod, const WorkloadRules& rules) {
  bool trains = HasOwnerOf(pod, rules.training), infers = HasOwnerOf(pod, rules.inference);
  WorkloadType weaker = WorkloadType::kNone;
  if (!pod.labels().empty()) {
    for (const LabelRule& rule : kLabelRules) {
      if (!Matches(pod, rule)) continue;
      if (rule.type == WorkloadType::kTraining) {
        trains = true;
      } else if (rule.type == WorkloadType::kInference) {
        infers = true;
      } else if (weaker == WorkloadType::kNone) {
        weaker = rule.type;
      }
    }
  }
  if (const WorkloadType type = OneOf(trains, infers); type != WorkloadType::kNone) return type;
  if (!trains) {  // Else both match, and programs and images cannot decide it.
    for (const v1beta1::Container& container : pod.containers()) {
      ForEachProgram(container, [&](WorkloadType type) {
        (type == WorkloadType::kTraining ? trains : infers) = true;
      });
    }
    if (const WorkloadType type = OneOf(trains, infers); type != WorkloadType::kNone) return type;
  }
  if (!trains) {
    for (const v1beta1::Container& container : pod.containers()) {
      const std::string name = ImageName(container.image());
      trains = trains || HasPartOf(name, rules.training);
      infers = infers || HasPartOf(name, rules.inference);
    }
    if (const WorkloadType type = OneOf(trains, infers); type != WorkloadType::kNone) return type;
  }
  if (weaker != WorkloadType::kNone || !pod.has_controller()) return weaker;
  const auto* const kind =
      std::find_if(std::begin(kKindRules), std::end(kKindRules),
                   [&](const KindRule& rule) { return rule.kind == pod.controller().kind(); });
  return kind == std::end(kKindRules) ? WorkloadType::kNone : kind->type;
}

std::vector<std::string> WorkloadLabels() {
  std::vector<std::string> keys;
  for (const LabelRule& rule : kLabelRules) keys.emplace_back(rule.key);
  return keys;
}

}  // namespace outboard::workloads
