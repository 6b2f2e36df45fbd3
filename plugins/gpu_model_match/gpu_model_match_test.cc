#include "plugins/gpu_model_match/gpu_model_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_yaml.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/gpu_model_match/gpu_model.h"
#include "plugins/gpu_model_match/numa_objects.h"

namespace outboard::gpu_model_match {
namespace {

using ::testing::FieldsAre;

TEST(GPUModelMatchTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/gpu_model_match/testdata");
}

TEST(GPUModelMatchTest, ReadsAnnotationsThatItDeclares) {
  EXPECT_THAT(Descriptor().needed_fields,
              testing::ElementsAre("Pod.metadata.annotations['accelerator.sched.io/gpu-numa']"));
}

// A node with one zone and 8 GPUs, at 2026-01-01T00:00:00Z.
class OneZone : public testing::Test {
 protected:
  static constexpr int64_t kNow = 1767225600;

  OneZone() : harness_(*sdk::testing::PluginHarness::Create(Descriptor())) {
    harness_->SetNow(absl::FromUnixSeconds(kNow));
    harness_->AddNode(*sdk::testing::NodeFromYaml(
        YAML::Load("{name: n, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}")));
    Publish(8);
  }
  // The updater writes the object.
  void Publish(int available) {
    v1beta1::ClusterObject object;
    v1beta1::GenericObject& custom = *object.mutable_generic_object();
    custom.set_resource(kNodeResourceTopologies);
    custom.set_name("n");
    custom.set_uid("uid-n");
    custom.set_json(absl::StrCat(
        R"({"attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
            "zones": [{"name": "node-0", "type": "Node", "resources": [{"name": "nvidia.com/gpu",
                       "capacity": "8", "allocatable": "8", "available": ")",
        available, R"("}]}]})"));
    harness_->AddObject(object);
  }
  static v1beta1::Pod Pod(const std::string& name, int gpus, const std::string& more = "") {
    return *sdk::testing::PodFromYaml(YAML::Load(
        absl::StrCat("{name: ", name, ", requests: {nvidia.com/gpu: ", gpus, "}", more, "}")));
  }
  void Start(const std::string& name, int gpus, int64_t at) {
    harness_->AddPod(Pod(name, gpus, absl::StrCat(", nodeName: n, startUnixSeconds: ", at)));
  }
  // The largest number of GPUs that a pod can have.
  int Free() {
    int gpus = 0;
    while (harness_->Filter(Pod(absl::StrCat("p", ++tried_), gpus + 1)).at("n").ok()) ++gpus;
    return gpus;
  }

  std::unique_ptr<sdk::testing::PluginHarness> harness_;
  int tried_ = 0;
};

TEST_F(OneZone, AnObjectThatChangesHasThePodsThatHadStarted) {
  EXPECT_EQ(Free(), 8);
  Start("a", 3, kNow - 10);
  harness_->AddPod(Pod("b", 2, ", nodeName: n"));
  EXPECT_EQ(Free(), 3);
  Publish(5);
  EXPECT_EQ(Free(), 3) << "only b is still to be subtracted";
  Start("b", 2, kNow);
  EXPECT_EQ(Free(), 3) << "it started after the last change";
  Publish(3);
  EXPECT_EQ(Free(), 3);
}

TEST_F(OneZone, AnObjectThatDoesNotChangeIsTrustedAfterAMinute) {
  Start("a", 3, kNow - 10);
  EXPECT_EQ(Free(), 5);
  harness_->SetNow(absl::FromUnixSeconds(kNow + 49));
  EXPECT_EQ(Free(), 5);
  harness_->SetNow(absl::FromUnixSeconds(kNow + 50));
  EXPECT_EQ(Free(), 8);
}

TEST_F(OneZone, PodsThatLeaveAreNoLongerSubtracted) {
  harness_->AddPod(Pod("a", 3, ", nodeName: n"));
  EXPECT_EQ(Free(), 5);
  harness_->RemovePod(Pod("a", 3).uid());
  EXPECT_EQ(Free(), 8);
}

TEST_F(OneZone, WithoutItsObjectANodeIsNotRejected) {
  harness_->AddPod(Pod("a", 3, ", nodeName: n"));
  EXPECT_EQ(Free(), 5);
  v1beta1::ClusterObject object;
  object.mutable_generic_object()->set_resource(kNodeResourceTopologies);
  object.mutable_generic_object()->set_name("n");
  harness_->RemoveObject(object);
  EXPECT_TRUE(harness_->Filter(Pod("q", 6)).at("n").ok());
  Publish(8);
  EXPECT_EQ(Free(), 5);
}

TEST(GpuModelTest, VendorAndCaseDoNotMatter) {
  EXPECT_THAT(ParseGpuModel("NVIDIA-A100-SXM4-80GB"),
              FieldsAre("a100-sxm4-80gb", "a100-sxm4-80gb"));
  EXPECT_THAT(ParseGpuModel("A100-sxm4-80GB"), FieldsAre("a100-sxm4-80gb", "a100-sxm4-80gb"));
  EXPECT_THAT(ParseGpuModel("Tesla-V100-PCIE-16GB"),
              FieldsAre("tesla-v100-pcie-16gb", "tesla-v100-pcie-16gb"));
}

TEST(GpuModelTest, SharedAndPartitionedGpusAreOfTheModelInFront) {
  EXPECT_THAT(ParseGpuModel("NVIDIA-A100-SXM4-80GB-SHARED"),
              FieldsAre("a100-sxm4-80gb-shared", "a100-sxm4-80gb"));
  EXPECT_THAT(ParseGpuModel("A100-SXM4-40GB-MIG-1g.5gb"),
              FieldsAre("a100-sxm4-40gb-mig-1g.5gb", "a100-sxm4-40gb"));
  EXPECT_THAT(ParseGpuModel("A100-SXM4-40GB-MIG-1g.5gb-SHARED"),
              FieldsAre("a100-sxm4-40gb-mig-1g.5gb-shared", "a100-sxm4-40gb"));
}

TEST(GpuModelTest, NothingIsMadeOfNothing) {
  EXPECT_THAT(ParseGpuModel(""), FieldsAre("", ""));
  EXPECT_THAT(ParseGpuModel("NVIDIA-"), FieldsAre("", ""));
  EXPECT_THAT(ParseGpuModel("-SHARED"), FieldsAre("-shared", ""));
  EXPECT_THAT(ParseGpuModel("-MIG-"), FieldsAre("-mig-", ""));
  EXPECT_THAT(ParseGpuModel("\xff\xfe"), FieldsAre("\xff\xfe", "\xff\xfe"));
}

}  // namespace
}  // namespace outboard::gpu_model_match
