#include "plugins/gpu_model_match/gpu_model_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/case_runner.h"
#include "plugins/gpu_model_match/gpu_model.h"

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
