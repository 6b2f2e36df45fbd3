#include "proto/workloads/workload_type.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace outboard::workloads {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

v1beta1::Pod PodOf(const std::string& kind, const Labels& labels, const std::string& image) {
  v1beta1::Pod pod;
  if (!kind.empty()) pod.mutable_controller()->set_kind(kind);
  pod.mutable_labels()->insert(labels.begin(), labels.end());
  pod.add_containers()->set_image(image);
  return pod;
}

absl::string_view Recognized(const std::string& kind, const Labels& labels,
                             const std::string& image = "pause") {
  return WorkloadTypeName(RecognizeWorkload(PodOf(kind, labels, image), DefaultWorkloadRules()));
}

// Pods as the controllers create them: their own controller, and the labels that matter.
TEST(WorkloadType, PodsOfKnownControllers) {
  struct Case {
    const char* what;
    const char* kind;
    Labels labels;
    const char* type;
  };
  for (const Case& c : std::vector<Case>{
           {"PyTorchJob",
            "PyTorchJob",
            {{"training.kubeflow.org/job-name", "ddp"},
             {"training.kubeflow.org/replica-type", "worker"}},
            "training"},
           {"MPIJob's launcher", "Job", {{"training.kubeflow.org/job-name", "nccl"}}, "training"},
           {"TrainJob, JobSet",
            "Job",
            {{"jobset.sigs.k8s.io/jobset-name", "llm"}, {"job-name", "llm-node-0"}},
            "training"},
           {"InferenceService",
            "ReplicaSet",
            {{"serving.kserve.io/inferenceservice", "iris"}, {"component", "predictor"}},
            "inference"},
           {"InferenceService on Knative",
            "ReplicaSet",
            {{"serving.kserve.io/inferenceservice", "iris"},
             {"serving.knative.dev/revision", "iris-00001"}},
            "inference"},
           {"LLMInferenceService",
            "ReplicaSet",
            {{"app.kubernetes.io/part-of", "llminferenceservice"}},
            "inference"},
           {"LeaderWorkerSet",
            "StatefulSet",
            {{"leaderworkerset.sigs.k8s.io/name", "vllm"}},
            "inference"},
           {"RayService",
            "RayCluster",
            {{"ray.io/cluster", "c"}, {"ray.io/serve", "false"}},
            "inference"},
           {"RayJob, RayCluster", "RayCluster", {{"ray.io/cluster", "c"}}, "batch"},
           {"Volcano Job", "Job", {{"volcano.sh/job-name", "j"}}, "batch"},
           {"Argo Workflow", "Workflow", {{"workflows.argoproj.io/workflow", "w"}}, "batch"},
           {"Spark executor", "Pod", {{"spark-app-selector", "spark-1"}}, "batch"},
           {"slurm-bridge", "Job", {{"scheduler.slinky.slurm.net/slurm-jobid", "7"}}, "batch"},
           {"Kubeflow Notebook", "StatefulSet", {{"notebook-name", "n"}}, "interactive"},
           {"JupyterHub", "", {{"component", "singleuser-server"}}, "interactive"},
           {"Knative", "ReplicaSet", {{"serving.knative.dev/revision", "r"}}, "service"},
           {"Deployment", "ReplicaSet", {{"app", "web"}, {"component", "api"}}, "service"},
           {"StatefulSet", "StatefulSet", {}, "service"},
           {"Job", "Job", {{"job-name", "j"}}, "batch"},
           {"another part of an application", "", {{"app.kubernetes.io/part-of", "shop"}}, "none"},
           {"unknown kind", "CloneSet", {}, "none"},
           {"no controller", "", {}, "none"},
       }) {
    EXPECT_EQ(Recognized(c.kind, c.labels), c.type) << c.what;
  }
}

absl::string_view RecognizedCommand(const std::vector<std::string>& command,
                                    const std::vector<std::string>& args,
                                    const std::string& image = "pytorch/pytorch") {
  v1beta1::Pod pod = PodOf("Job", {{"job-name", "j"}}, image);
  for (const std::string& word : command) pod.mutable_containers(0)->add_command(word);
  for (const std::string& word : args) pod.mutable_containers(0)->add_args(word);
  return WorkloadTypeName(RecognizeWorkload(pod, DefaultWorkloadRules()));
}

TEST(WorkloadType, ProgramsDecideWhereControllersDoNot) {
  EXPECT_EQ(RecognizedCommand({"torchrun", "--nnodes=2", "train.py"}, {}), "training");
  EXPECT_EQ(RecognizedCommand({"/opt/conda/bin/torchrun"}, {"x.py"}), "training");
  EXPECT_EQ(RecognizedCommand({"bash", "-c"}, {"cd /app && deepspeed --num_gpus 8 x.py"}),
            "training");
  EXPECT_EQ(RecognizedCommand({"python", "-m", "torch.distributed.run", "x.py"}, {}), "training");
  EXPECT_EQ(RecognizedCommand({"vllm", "serve", "m"}, {}), "inference");
  EXPECT_EQ(RecognizedCommand({}, {"python3 -m sglang.launch_server --tp 4"}), "inference");
  // Programs are stronger than images.
  EXPECT_EQ(RecognizedCommand({"torchrun", "x.py"}, {}, "team/inference-tools"), "training");
  // Neither a part of a word, nor both.
  EXPECT_EQ(RecognizedCommand({"python", "torchrunner.py"}, {}), "batch");
  EXPECT_EQ(RecognizedCommand({"sh", "-c", "torchrun x.py; vllm serve"}, {}), "batch");
  // Only the beginning of a script counts.
  EXPECT_EQ(RecognizedCommand({"sh", "-c", std::string(5000, '#') + " torchrun x.py"}, {}),
            "batch");
}

TEST(WorkloadType, ImagesDecideWhereControllersDoNot) {
  EXPECT_EQ(Recognized("ReplicaSet", {}, "vllm/vllm-openai:v0.8.0"), "inference");
  EXPECT_EQ(Recognized("Job", {}, "team/bert-train"), "training");
  EXPECT_EQ(Recognized("RayCluster", {{"ray.io/cluster", "c"}}, "team/train"), "training");
  EXPECT_EQ(Recognized("StatefulSet", {{"notebook-name", "n"}}, "team/train"), "training");
  EXPECT_EQ(Recognized("Job", {}, "team/train-and-serving"), "batch") << "both match";
  EXPECT_EQ(Recognized("", {}, "pytorch/pytorch"), "none");
}

TEST(WorkloadType, ControllersDecideBeforeImages) {
  EXPECT_EQ(Recognized("PyTorchJob", {}, "vllm/vllm-openai"), "training");
  EXPECT_EQ(Recognized("Job", {{"jobset.sigs.k8s.io/jobset-name", "j"}}, "vllm/vllm-openai"),
            "training");
  // Training and inference at once: what is left is a Job.
  EXPECT_EQ(Recognized("Job",
                       {{"jobset.sigs.k8s.io/jobset-name", "j"},
                        {"leaderworkerset.sigs.k8s.io/name", "l"}},
                       "team/train"),
            "batch");
}

TEST(WorkloadType, OtherRules) {
  WorkloadRules rules;
  rules.training.owner_kinds = {"Workflow"};
  rules.inference.images = {"pytorch"};
  EXPECT_EQ(RecognizeWorkload(PodOf("Workflow", {}, "pytorch/pytorch"), rules),
            WorkloadType::kTraining);
  EXPECT_EQ(RecognizeWorkload(PodOf("Job", {}, "pytorch/pytorch"), rules),
            WorkloadType::kInference);
  EXPECT_EQ(RecognizeWorkload(PodOf("PyTorchJob", {}, "vllm/vllm-openai"), rules),
            WorkloadType::kNone);
}

TEST(WorkloadType, NamesOfImages) {
  EXPECT_EQ(ImageName("vllm/vllm-openai:v0.8.0"), "vllm/vllm-openai");
  EXPECT_EQ(ImageName("registry.example.com:5000/Team/App:v1@sha256:abc"), "team/app");
  EXPECT_EQ(ImageName("registry.example.com:5000/app"), "app");
  EXPECT_EQ(ImageName("localhost/app"), "app");
  EXPECT_EQ(ImageName("app:latest"), "app");
  EXPECT_EQ(ImageName(""), "");
  EXPECT_EQ(ImageName("@"), "");
}

TEST(WorkloadType, TypesAndLabelsAreNamedOnce) {
  std::set<absl::string_view> names;
  for (const WorkloadType type : kWorkloadTypes) names.insert(WorkloadTypeName(type));
  EXPECT_EQ(names.size(), std::size(kWorkloadTypes));
  const std::vector<std::string> labels = WorkloadLabels();
  EXPECT_EQ(std::set<std::string>(labels.begin(), labels.end()).size(), labels.size());
}

}  // namespace
}  // namespace outboard::workloads
