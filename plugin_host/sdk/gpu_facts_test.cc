#include "plugin_host/sdk/gpu_facts.h"

#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

const Generations kGenerations = {{"v100", 7}, {"a100", 8}, {"h100", 9}};

class GpuFactsTest : public ::testing::Test {
 protected:
  GpuFacts Read(const std::map<std::string, std::string>& labels) {
    malformed_.clear();
    return ReadGpuFacts({labels.begin(), labels.end()}, kGenerations, &malformed_);
  }
  std::vector<MalformedLabel> malformed_;
};

TEST_F(GpuFactsTest, NothingIsMadeUpWithoutLabels) {
  const GpuFacts facts = Read({});
  EXPECT_EQ(facts.memory_gb, std::nullopt);
  EXPECT_EQ(facts.generation, std::nullopt);
  EXPECT_FALSE(facts.nvlink);
  EXPECT_TRUE(malformed_.empty());
}

TEST_F(GpuFactsTest, OwnLabelsComeBeforeDiscoveredOnes) {
  const GpuFacts facts = Read({{kMemoryLabel, "40"},
                               {kGenerationLabel, "A100"},
                               {kInterconnectLabel, "nvlink"},
                               {kDiscoveredMemoryLabel, "16160"},
                               {kDiscoveredProductLabel, "Tesla-V100-PCIE-16GB"}});
  EXPECT_EQ(facts.memory_gb, 40);
  EXPECT_EQ(facts.generation, 8);
  EXPECT_TRUE(facts.nvlink);
}

TEST_F(GpuFactsTest, DiscoveredMemoryIsRoundedToTheNominalSize) {
  EXPECT_EQ(Read({{kDiscoveredMemoryLabel, "81559"}}).memory_gb, 80);
  EXPECT_EQ(Read({{kDiscoveredMemoryLabel, "40536"}}).memory_gb, 40);
  EXPECT_EQ(Read({{kDiscoveredMemoryLabel, "4096"}}).memory_gb, 4);
}

TEST_F(GpuFactsTest, GenerationComesFromTheProductWithAnySuffixOrTheFamily) {
  EXPECT_EQ(Read({{kDiscoveredProductLabel, "NVIDIA-H100-80GB-HBM3"}}).generation, 9);
  EXPECT_EQ(Read({{kDiscoveredProductLabel, "A100-SXM4-80GB-SHARED"}}).generation, 8);
  EXPECT_EQ(Read({{kDiscoveredProductLabel, "A100-SXM4-40GB-MIG-1g.5gb"}}).generation, 8);
  EXPECT_EQ(Read({{kDiscoveredProductLabel, "NVIDIA-A10"}}).generation, std::nullopt);
  EXPECT_EQ(Read({{kDiscoveredFamilyLabel, "volta"}}).generation, 7);
  EXPECT_EQ(Read({{kDiscoveredFamilyLabel, "turing"}}).generation, std::nullopt);
  EXPECT_TRUE(malformed_.empty()) << "values of discovery are unknown, not malformed";
}

TEST_F(GpuFactsTest, MalformedLabelsCountAsAbsentAndAreReported) {
  for (const char* text : {"", "much", "-8", "+8", "8GB", "nan", "inf", "1e300"}) {
    const GpuFacts facts = Read({{kMemoryLabel, text}, {kDiscoveredMemoryLabel, "16384"}});
    EXPECT_EQ(facts.memory_gb, 16) << text;
    ASSERT_EQ(malformed_.size(), 1u) << text;
    EXPECT_EQ(malformed_[0].key, kMemoryLabel);
    EXPECT_EQ(malformed_[0].value, text);
  }
  EXPECT_EQ(Read({{kDiscoveredMemoryLabel, "x"}}).memory_gb, std::nullopt);
  EXPECT_EQ(malformed_.size(), 1u);
  EXPECT_EQ(Read({{kGenerationLabel, "k80"}}).generation, std::nullopt);
  EXPECT_EQ(malformed_.size(), 1u);
}

}  // namespace
}  // namespace outboard::sdk
