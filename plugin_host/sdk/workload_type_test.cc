#include "plugin_host/sdk/workload_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using testing::PodBuilder;

WorkloadTypes Types(const std::string& args = "") {
  ArgsReader reader(args);
  const WorkloadTypes types = WorkloadTypes::Read(reader.root());
  EXPECT_TRUE(reader.ok());
  return types;
}

WorkloadType OfImage(const std::string& image, const std::string& args = "") {
  return Types(args).TypeOf(PodBuilder("p").Container(image, {}));
}

WorkloadType OfOwner(const std::string& kind, const std::string& image = "pause") {
  PodBuilder pod("p");
  pod.Container(image, {});
  pod.proto().mutable_controller()->set_kind(kind);
  return Types().TypeOf(pod);
}

TEST(WorkloadTypeTest, TheLabelDecides) {
  PodBuilder pod("p");
  pod.Container("vllm/vllm-openai", {});
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kInference);
  pod.Label(kWorkloadTypeLabel, "Training");
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kTraining);
  pod.Label(kWorkloadTypeLabel, "inference");
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kInference);
  pod.Label(kWorkloadTypeLabel, "CPU-intensive");
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kOther);
}

TEST(WorkloadTypeTest, ThenTheOwner) {
  EXPECT_EQ(OfOwner("PyTorchJob"), WorkloadType::kTraining);
  EXPECT_EQ(OfOwner("PyTorchJob", "vllm/vllm-openai"), WorkloadType::kTraining);
  EXPECT_EQ(OfOwner("ReplicaSet"), WorkloadType::kOther);
  EXPECT_EQ(OfOwner("ReplicaSet", "vllm/vllm-openai"), WorkloadType::kInference);
  EXPECT_EQ(OfOwner("Job", "team/bert-train"), WorkloadType::kTraining);
}

// The rules themselves: proto/workloads/workload_type_test.cc.
TEST(WorkloadTypeTest, LabelsOfControllersCountAsTheOwner) {
  PodBuilder pod("p");
  pod.Container("vllm/vllm-openai", {}).Label("jobset.sigs.k8s.io/jobset-name", "llm");
  pod.proto().mutable_controller()->set_kind("Job");
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kTraining);
  pod.Label(kWorkloadTypeLabel, "inference");
  EXPECT_EQ(Types().TypeOf(pod), WorkloadType::kInference);
  PodBuilder service("s");
  service.Container("team/web", {}).Label("serving.kserve.io/inferenceservice", "llm");
  service.proto().mutable_controller()->set_kind("ReplicaSet");
  EXPECT_EQ(Types().TypeOf(service), WorkloadType::kInference);
  EXPECT_EQ(OfOwner("Job"), WorkloadType::kOther) << "batch";
}

TEST(WorkloadTypeTest, TheSignatureHasWhatIsRead) {
  EXPECT_THAT(WorkloadTypeParts(),
              ::testing::IsSupersetOf({"spec.containers", "metadata.ownerReferences",
                                       "metadata.labels['workload-type']",
                                       "metadata.labels['leaderworkerset.sigs.k8s.io/name']"}));
  for (const std::string& part : WorkloadTypeParts())
    EXPECT_TRUE(PodParts::Parse({part}).ok()) << part;
}

TEST(WorkloadTypeTest, ThenTheImage) {
  for (const char* image : {"vllm/vllm-openai:v0.8.0", "nvcr.io/nvidia/tritonserver:24.05-py3",
                            "ghcr.io/huggingface/text-generation-inference:2.4", "lmsysorg/sglang",
                            "ollama/ollama", "tensorflow/serving"}) {
    EXPECT_EQ(OfImage(image), WorkloadType::kInference) << image;
  }
  for (const char* image : {"example.com/bert-training:1", "deepspeed/deepspeed"})
    EXPECT_EQ(OfImage(image), WorkloadType::kTraining) << image;
  // A registry's name, a tag, and images that match both or none.
  for (const char* image : {"pytorch/pytorch", "train.example.com/app", "app:training", "",
                            "example.com/train-and-serving", "\xff\xfe"})
    EXPECT_EQ(OfImage(image), WorkloadType::kOther) << image;
}

TEST(WorkloadTypeTest, OtherTraitsFromArgs) {
  const std::string args =
      R"({"training": {"ownerKinds": ["Workflow"], "images": ["PyTorch"]}, "inference": {"images": []}})";
  EXPECT_EQ(OfImage("pytorch/pytorch", args), WorkloadType::kTraining);
  EXPECT_EQ(OfImage("vllm/vllm-openai", args), WorkloadType::kOther);
}

}  // namespace
}  // namespace outboard::sdk
