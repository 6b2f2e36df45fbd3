#include "plugin_host/sdk/workload_type.h"

#include <gtest/gtest.h>

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

TEST(WorkloadTypeTest, NamesOfImages) {
  EXPECT_EQ(ImageName("vllm/vllm-openai:v0.8.0"), "vllm/vllm-openai");
  EXPECT_EQ(ImageName("registry.example.com:5000/Team/App:v1@sha256:abc"), "team/app");
  EXPECT_EQ(ImageName("registry.example.com:5000/app"), "app");
  EXPECT_EQ(ImageName("localhost/app"), "app");
  EXPECT_EQ(ImageName("app:latest"), "app");
  EXPECT_EQ(ImageName(""), "");
  EXPECT_EQ(ImageName("@"), "");
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
