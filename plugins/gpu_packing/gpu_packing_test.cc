#include "plugins/gpu_packing/gpu_packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugin_host/sdk/testing/preemption_harness.h"

namespace outboard::gpu_packing {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;

TEST(GPUPackingTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/gpu_packing/testdata");
}

// Two whole GPUs and two halves are idle. Two thirds of the target workload need a whole GPU and
// lose the halves; one third needs halves and loses nothing.
TEST(GPUPackingTest, ReportsFragmentation) {
  auto harness = PluginHarness::Create(
      Descriptor(),
      R"({"targetWorkload": [{"gpus": 1, "weight": 2}, {"gpus": 1, "gpuMilli": 500}]})");
  ASSERT_TRUE(harness.ok()) << harness.status();
  for (const char* name : {"n1", "n2"}) {
    (*harness)->AddNode(NodeBuilder(name).Allocatable({{"cpu", "32"}, {"nvidia.com/gpu", "2"}}));
    (*harness)->AddPod(
        PodBuilder(absl::StrCat("half-of-", name)).OnNode(name).Annotation("gpu-fraction", "0.5"));
  }
  (*harness)->AddNode(NodeBuilder("without").Allocatable({{"cpu", "32"}}));
  const auto value = [&](const char* name) {
    return (*harness)->Metric(absl::StrCat("outboard_gpu_packing_", name), {"default-scheduler"});
  };
  (*harness)->Tick();
  EXPECT_EQ(value("gpus"), 4);
  EXPECT_EQ(value("idle_gpus"), 3);
  EXPECT_NEAR(value("fragmented_gpus").value_or(-1), 2.0 / 3, 1e-9);
  // A pod arrives; the metrics follow at a later tick, not at each.
  (*harness)->AddPod(PodBuilder("whole").OnNode("n1").Requests({{"nvidia.com/gpu", "1"}}));
  (*harness)->SetNow(absl::UnixEpoch() + absl::Seconds(4));
  (*harness)->Tick();
  EXPECT_EQ(value("idle_gpus"), 3);
  (*harness)->SetNow(absl::UnixEpoch() + absl::Seconds(5));
  (*harness)->Tick();
  EXPECT_EQ(value("idle_gpus"), 2);
  EXPECT_NEAR(value("fragmented_gpus").value_or(-1), 2.0 / 3, 1e-9);
}

v1beta1::Pod RandomPod(int number, std::mt19937* random) {
  PodBuilder pod(absl::StrCat("p", number));
  const std::string cpu = absl::StrCat(1 + (*random)() % 8);
  switch ((*random)() % 4) {
    case 0:
      pod.Requests({{"cpu", cpu}});
      break;
    case 1:
      pod.Requests({{"cpu", cpu}, {"nvidia.com/gpu", absl::StrCat(1 + (*random)() % 3)}});
      break;
    case 2:
      pod.Requests({{"cpu", cpu}})
          .Annotation("gpu-fraction", absl::StrCat("0.", 1 + (*random)() % 9));
      break;
    default:
      pod.Requests({{"cpu", cpu}, {"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "4096"}});
  }
  pod.proto().set_creation_unix_seconds(number);
  return pod;
}

v1beta1::Node MakeNode(int number) {
  return NodeBuilder(absl::StrCat("n", number))
      .Allocatable({{"cpu", "32"}, {"memory", "64Gi"}, {"pods", "110"}, {"nvidia.com/gpu", "4"}})
      .Label("nvidia.com/gpu.memory", "16384");
}

// Pods come and go and are evaluated; the running plugin answers as a new one.
TEST(GPUPackingTest, UsageFollowsTheCluster) {
  for (
      const char* args :
      {R"({"targetWorkload": [{"gpus": 1, "cpuMillis": 4000, "weight": 3}, {"gpus": 1, "gpuMilli": 500},
            {"gpus": 4, "cpuMillis": 8000}]})",
       "{}"}) {
    std::mt19937 random(5);
    constexpr int kNodes = 6;
    auto old = PluginHarness::Create(Descriptor(), args);
    ASSERT_TRUE(old.ok()) << old.status();
    for (int i = 0; i < kNodes; ++i) (*old)->AddNode(MakeNode(i));
    std::map<std::string, v1beta1::Pod> placed;
    for (int round = 0; round < 150; ++round) {
      if (!placed.empty() && random() % 3 == 0) {
        const auto gone = std::next(placed.begin(), static_cast<int>(random() % placed.size()));
        (*old)->RemovePod(gone->second.uid());
        placed.erase(gone);
      } else {
        v1beta1::Pod pod = RandomPod(round, &random);
        pod.set_node_name(absl::StrCat("n", random() % kNodes));
        (*old)->AddPod(pod);
        placed[pod.uid()] = pod;
      }
      if (round % 10 != 0) continue;
      auto fresh = PluginHarness::Create(Descriptor(), args);
      ASSERT_TRUE(fresh.ok());
      for (int i = 0; i < kNodes; ++i) (*fresh)->AddNode(MakeNode(i));
      for (const auto& [uid, pod] : placed) (*fresh)->AddPod(pod);
      const v1beta1::Pod asking = RandomPod(1000 + round, &random);
      (*old)->AddPod(asking);
      (*fresh)->AddPod(asking);
      (*old)->Tick();
      (*fresh)->Tick();
      ASSERT_EQ((*old)->Filter(asking), (*fresh)->Filter(asking)) << round;
      const auto scores = (*old)->Score(asking);
      ASSERT_TRUE(scores.ok());
      ASSERT_EQ(*scores, *(*fresh)->Score(asking)) << round;
      for (const auto& [node, score] : *scores) ASSERT_TRUE(score >= 0 && score <= 100);
      (*old)->RemovePod(asking.uid());
    }
  }
}

// Any node labels: no crash, and no invented GPUs.
TEST(GPUPackingTest, AbsurdLabels) {
  auto harness = PluginHarness::Create(Descriptor(), "");
  ASSERT_TRUE(harness.ok());
  const char* const texts[] = {
      "",    "-1", "0",  "1e9", "nan", "inf", "0x10", "99999999999999999999",
      "GPU", "½",  " 4", "4 ",  "1.5", "+3",  "true", "9007199254740993"};
  int number = 0;
  for (const char* key : {"nvidia.com/gpu.count", "nvidia.com/gpu.memory",
                          "nvidia.com/gpu.replicas", "nvidia.com/gpu.product"}) {
    for (const char* text : texts) {
      NodeBuilder node(absl::StrCat("n", number++));
      (*harness)->AddNode(node.Allocatable({{"cpu", "8"}, {"pods", "9"}, {"nvidia.com/gpu", "2"}})
                              .Label(key, text));
    }
  }
  (*harness)->AddNode(NodeBuilder("huge").Allocatable(
      {{"cpu", "8"}, {"pods", "9"}, {"nvidia.com/gpu", "9000000000000000000"}}));
  const v1beta1::Pod two = PodBuilder("two").Requests({{"nvidia.com/gpu", "2"}});
  for (const auto& [node, verdict] : (*harness)->Filter(two))
    EXPECT_TRUE(verdict.ok()) << node << ": " << verdict.reasons()[0];
  const v1beta1::Pod three = PodBuilder("three").Requests({{"nvidia.com/gpu", "3"}});
  int rejected = 0;
  for (const auto& [node, verdict] : (*harness)->Filter(three)) rejected += verdict.ok() ? 0 : 1;
  // All nodes except `huge`, which has too many GPUs for a layout.
  EXPECT_EQ(rejected, number);
  const auto scores = (*harness)->Score(two);
  ASSERT_TRUE(scores.ok());
  for (const auto& [node, score] : *scores) EXPECT_TRUE(score >= 0 && score <= 100);
}

TEST(GPUPackingTest, SeesWhatWouldBeWithoutAPod) {
  auto harness = PreemptionHarness::Create(sdk::testing::TryEachPod(), {Descriptor()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("n").Allocatable({{"pods", "9"}, {"nvidia.com/gpu", "1"}}));
  for (const auto& [name, share] : {std::pair("small", "0.3"), std::pair("large", "0.6")})
    (*harness)->AddPod(PodBuilder(name).Annotation("gpu-fraction", share).OnNode("n"));
  const v1beta1::PostFilterResponse answer =
      (*harness)->Attempt(PodBuilder("p").Annotation("gpu-fraction", "0.5"));
  ASSERT_EQ(answer.candidates().candidates_size(), 1);
  EXPECT_THAT(answer.candidates().candidates(0).victim_uids(),
              testing::ElementsAre("default/large"));
}

// The cluster's pods decide which pieces are worth keeping.
TEST(GPUPackingTest, LearnsFromThePodsThatThereAre) {
  for (const bool whole : {true, false}) {
    auto harness = PluginHarness::Create(Descriptor(), "");
    ASSERT_TRUE(harness.ok());
    (*harness)->AddNode(MakeNode(0));
    (*harness)->AddNode(MakeNode(1));
    PodBuilder broken("broken");
    (*harness)->AddPod(broken.Annotation("gpu-fraction", "0.9").OnNode("n0"));
    for (int i = 0; i < 100; ++i) {
      PodBuilder pod(absl::StrCat("waits-", i));
      if (whole) {
        pod.Requests({{"nvidia.com/gpu", "1"}});
      } else {
        pod.Annotation("gpu-fraction", "0.1");
      }
      (*harness)->AddPod(pod);
    }
    const v1beta1::Pod asking = PodBuilder("asking").Annotation("gpu-fraction", "0.1");
    const auto scores = (*harness)->RawScore(asking);
    ASSERT_TRUE(scores.ok());
    if (whole) {
      EXPECT_GT(scores->at("n0"), scores->at("n1") + 10) << "a whole GPU is worth keeping";
    } else {
      EXPECT_EQ(scores->at("n0"), scores->at("n1")) << "any piece is useful";
    }
  }
}

}  // namespace
}  // namespace outboard::gpu_packing
