#include "plugins/workload_strategy_scorer/workload_strategy_scorer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::workload_strategy_scorer {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

TEST(WorkloadStrategyScorerTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/workload_strategy_scorer/testdata");
}

class WorkloadStrategyScorerStateTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(made.ok()) << made.status();
    harness_ = *std::move(made);
    harness_->AddNode(
        NodeBuilder("n").Allocatable({{"nvidia.com/gpu", "4"}}).Label("gpu-memory-gb", "25"));
  }
  // Scores a new pod on each call.
  int64_t ScoreOf(const std::string& type, int gpus) {
    const auto scores = harness_->Score(PodBuilder(absl::StrCat("p", ++pods_))
                                            .Label("workload-type", type)
                                            .Requests({{"nvidia.com/gpu", absl::StrCat(gpus)}}));
    EXPECT_TRUE(scores.ok()) << scores.status();
    return scores.ok() ? scores->at("n") : -1;
  }
  PodBuilder Inference(const std::string& name, int gpus) {
    return PodBuilder(name)
        .Label("workload-type", "inference")
        .Requests({{"nvidia.com/gpu", absl::StrCat(gpus)}})
        .OnNode("n");
  }
  std::unique_ptr<PluginHarness> harness_;
  int pods_ = 0;
};

TEST_F(WorkloadStrategyScorerStateTest, PodsThatLeaveAreForgotten) {
  EXPECT_EQ(ScoreOf("inference", 3), 95);
  EXPECT_EQ(ScoreOf("training", 4), 90);
  harness_->AddPod(Inference("q", 1));
  EXPECT_EQ(ScoreOf("inference", 3), 30);
  EXPECT_EQ(ScoreOf("inference", 2), 95);
  EXPECT_EQ(ScoreOf("training", 3), 10);
  harness_->RemovePod("default/q");
  EXPECT_EQ(ScoreOf("inference", 3), 95);
  EXPECT_EQ(ScoreOf("training", 4), 90);
}

TEST_F(WorkloadStrategyScorerStateTest, PodsThatChangeAreCountedAsTheyAre) {
  harness_->AddPod(Inference("q", 1));
  harness_->AddPod(Inference("q", 2));
  EXPECT_EQ(ScoreOf("inference", 1), 95);
  harness_->AddPod(Inference("q", 1).Label("workload-type", "training"));
  EXPECT_EQ(ScoreOf("training", 3), 90);
  EXPECT_EQ(ScoreOf("inference", 3), 95);
}

TEST_F(WorkloadStrategyScorerStateTest, NodesThatComeBackAreReadAgain) {
  harness_->AddPod(Inference("q", 1));
  harness_->RemoveNode("n");
  harness_->AddNode(
      NodeBuilder("n").Allocatable({{"nvidia.com/gpu", "8"}}).Label("gpu-memory-gb", "25"));
  EXPECT_EQ(ScoreOf("inference", 5), 95) << "(1 + 5) / 8";
  EXPECT_EQ(ScoreOf("training", 1), 10);
}

// Invalid labels always give one of the six scores, as if they were absent.
TEST(WorkloadStrategyScorerTest, AbsurdLabelsScoreAsAbsentOnes) {
  const std::vector<std::string> absurd = {
      "",    "-1", "1e400", "99999999999999999999", "0x8", "NaN", " 8 ", "eight", "\u0668", "inf",
      "8GB", "+8", "[[[[[", "{\"gpu\": 1}",         "\xff"};
  std::mt19937 random(1);
  const auto pick = [&] { return absurd[random() % absurd.size()]; };
  for (int round = 0; round < 300; ++round) {
    auto harness = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(harness.ok());
    (*harness)->AddNode(NodeBuilder("n")
                            .Allocatable({{"nvidia.com/gpu", "8"}})
                            .Label("gpu-memory-gb", pick())
                            .Label("nvidia.com/gpu.memory", pick())
                            .Label("nvidia.com/gpu.count", pick()));
    (*harness)->AddPod(PodBuilder("q")
                           .Requests({{"nvidia.com/gpu", "1"}})
                           .OnNode("n")
                           .Annotation("accelerator.sched.io/gpu-ids", pick())
                           .Annotation("scheduling.koordinator.sh/device-allocated", pick())
                           .Annotation("accelerator.sched.io/gpu-memory-gb", pick())
                           .Annotation("gpu-memory", pick()));
    const auto score = [&](const std::string& name, const std::string& type, int gpus) {
      return (*harness)
          ->Score(PodBuilder(name)
                      .Label("workload-type", type)
                      .Requests({{"nvidia.com/gpu", absl::StrCat(gpus)}})
                      .Annotation("gpu-memory", pick()))
          ->at("n");
    };
    EXPECT_EQ(score("a", "inference", 6), 50);
    EXPECT_EQ(score("b", "training", 7), 90);
    EXPECT_EQ(score("c", "training", 8), 50);
    EXPECT_EQ(score("d", pick(), 8), 50);
  }
}

}  // namespace
}  // namespace outboard::workload_strategy_scorer
