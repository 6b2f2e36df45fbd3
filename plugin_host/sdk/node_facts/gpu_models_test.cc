#include "plugin_host/sdk/node_facts/gpu_models.h"

#include <gtest/gtest.h>

namespace outboard::sdk::gpu_models_test {
namespace {

TEST(GpuModelsTest, NamesAreTakenApart) {
  const GpuProduct mig = ParseGpuProduct("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED");
  EXPECT_EQ(mig.words, (std::vector<std::string>{"nvidia", "a100", "sxm4", "40gb"}));
  EXPECT_EQ(mig.mig_profile, "1g.5gb");
  EXPECT_TRUE(mig.shared);
  EXPECT_TRUE(ParseGpuProduct("AMD_Instinct_MI300X_OAM").Has("mi300x"));
  EXPECT_FALSE(NamesModel("NVIDIA-"));
  EXPECT_FALSE(NamesModel("nvidia--SHARED"));
  EXPECT_FALSE(NamesModel("-MIG-1g.5gb"));
  EXPECT_TRUE(NamesModel("a100"));
}

TEST(GpuModelsTest, FamiliesByCapability) {
  EXPECT_EQ(FamilyOfCapability(7, 0), "volta");
  EXPECT_EQ(FamilyOfCapability(7, 5), "turing");
  EXPECT_EQ(FamilyOfCapability(8, 6), "ampere");
  EXPECT_EQ(FamilyOfCapability(8, 9), "ada-lovelace");
  EXPECT_EQ(FamilyOfCapability(10, 3), "blackwell");
  EXPECT_EQ(FamilyOfCapability(12, 0), "blackwell");
  EXPECT_EQ(FamilyOfCapability(99, 0), "");
}

TEST(GpuModelsTest, OverriddenGenerationsCountForTheFamilyToo) {
  EXPECT_EQ(GenerationOfFamily("ampere", {{"a100", 80}}), 80);
  EXPECT_EQ(GenerationOfFamily("ada-lovelace", {{"a100", 80}}), 8);
  EXPECT_EQ(GenerationOfFamily("undefined", DefaultGenerations()), std::nullopt);
  EXPECT_EQ(GenerationOfProduct(ParseGpuProduct("NVIDIA-B200"), {{"b200", 42}}), 42);
}

TEST(GpuModelsTest, BoardsByName) {
  const auto topology = [](const char* name, std::optional<int64_t> gpus) {
    return BoardOfProduct(ParseGpuProduct(name), gpus).topology;
  };
  EXPECT_EQ(topology("NVIDIA-A100-SXM-64GB", 4), GpuTopology::kNvlink);
  EXPECT_EQ(topology("NVIDIA-H100-80GB-HBM3", std::nullopt), GpuTopology::kNvswitch);
  EXPECT_EQ(topology("NVIDIA-H100-80GB-HBM3", 1), GpuTopology::kPcie) << "nothing to link with";
  EXPECT_EQ(topology("NVIDIA-H100-NVL", 8), GpuTopology::kPcie);
  EXPECT_EQ(topology("NVIDIA-H100", 8), GpuTopology::kUnknown);
  EXPECT_EQ(topology("NVIDIA-GH200-480GB", 4), GpuTopology::kUnknown);
  EXPECT_EQ(topology("NVIDIA-X999", 8), GpuTopology::kUnknown);
  EXPECT_TRUE(BoardOfProduct(ParseGpuProduct("NVIDIA-B200"), std::nullopt).islands.empty())
      << "the number is unknown";
}

}  // namespace
}  // namespace outboard::sdk::gpu_models_test
