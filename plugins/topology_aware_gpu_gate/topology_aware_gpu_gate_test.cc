#include "plugins/topology_aware_gpu_gate/topology_aware_gpu_gate.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugin_host/sdk/testing/preemption_harness.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;

// Counts warnings that mention a text.
class Warnings : public google::LogSink {
 public:
  explicit Warnings(std::string text) : text_(std::move(text)) { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message, size_t length) override {
    count_ += severity == google::GLOG_WARNING &&
              absl::StrContains(absl::string_view(message, length), text_);
  }
  int count() const { return count_; }

 private:
  const std::string text_;
  int count_ = 0;
};

TEST(TopologyAwareGPUGateTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/topology_aware_gpu_gate/testdata");
}

TEST(TopologyAwareGPUGateTest, WarnsOnceAnAttemptWhenItIsSlow) {
  const auto warned_with = [](const std::string& args) {
    auto harness = PluginHarness::Create(Descriptor(), args);
    EXPECT_TRUE(harness.ok()) << harness.status();
    for (int i = 0; i < 200; ++i)
      (*harness)->AddNode(NodeBuilder(absl::StrCat("n", i)).Allocatable({{"nvidia.com/gpu", "8"}}));
    Warnings warnings("took longer than");
    (*harness)->Filter(PodBuilder("plain").Requests({{"nvidia.com/gpu", "8"}}));
    EXPECT_EQ(warnings.count(), 0) << "the gate does not apply";
    (*harness)->Filter(PodBuilder("p")
                           .Requests({{"nvidia.com/gpu", "8"}})
                           .Label("accelerator.sched.io/parallelism", "ddp"));
    return warnings.count();
  };
  EXPECT_EQ(warned_with(R"({"slowCall": "0s"})"), 1);
  EXPECT_EQ(warned_with(R"({"slowCall": "1h"})"), 0);
}

TEST(TopologyAwareGPUGateTest, ForgetsTheGpusOfPodsThatWent) {
  auto harness = PluginHarness::Create(Descriptor());
  ASSERT_TRUE(harness.ok());
  (*harness)->AddNode(NodeBuilder("n")
                          .Allocatable({{"nvidia.com/gpu", "8"}})
                          .Annotation("accelerator.sched.io/gpu-islands", "nvlink 0-3;4-7"));
  const PodBuilder waiting = PodBuilder("p")
                                 .Requests({{"nvidia.com/gpu", "4"}})
                                 .Label("accelerator.sched.io/parallelism", "ddp");
  const auto fits = [&] { return (*harness)->Filter(waiting).at("n").ok(); };
  EXPECT_TRUE(fits());
  for (const auto& [name, ids] : {std::pair("a", "0"), std::pair("b", "4")}) {
    (*harness)->AddPod(PodBuilder(name)
                           .Requests({{"nvidia.com/gpu", "1"}})
                           .OnNode("n")
                           .Annotation("accelerator.sched.io/gpu-ids", ids));
  }
  EXPECT_FALSE(fits()) << "3 GPUs are free in each island";
  (*harness)->RemovePod("default/a");
  EXPECT_TRUE(fits());
  // The same pod with other GPUs.
  (*harness)->AddPod(PodBuilder("b")
                         .Requests({{"nvidia.com/gpu", "2"}})
                         .OnNode("n")
                         .Annotation("accelerator.sched.io/gpu-ids", "3,4"));
  EXPECT_FALSE(fits());
  (*harness)->RemovePod("default/b");
  EXPECT_TRUE(fits());
}

TEST(TopologyAwareGPUGateTest, SeesWhatWouldBeWithoutAPod) {
  auto harness = PreemptionHarness::Create(sdk::testing::TryEachPod(), {Descriptor()});
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("n")
                          .Allocatable({{"nvidia.com/gpu", "8"}})
                          .Annotation("accelerator.sched.io/gpu-islands", "nvlink 0-3;4-7"));
  for (const auto& [name, ids] :
       {std::pair("a", "0,1"), std::pair("b", "4"), std::pair("c", "5")}) {
    (*harness)->AddPod(PodBuilder(name)
                           .Requests({{"nvidia.com/gpu", absl::StrContains(ids, ",") ? "2" : "1"}})
                           .OnNode("n")
                           .Annotation("accelerator.sched.io/gpu-ids", ids));
  }
  const v1beta1::PostFilterResponse answer =
      (*harness)->Attempt(PodBuilder("p")
                              .Requests({{"nvidia.com/gpu", "4"}})
                              .Label("accelerator.sched.io/parallelism", "ddp"));
  ASSERT_EQ(answer.candidates().candidates_size(), 1)
      << "4 and 5 lie in one island, so neither alone helps";
  EXPECT_THAT(answer.candidates().candidates(0).victim_uids(), testing::ElementsAre("default/a"));
}

// Invalid labels never cause a crash or an island that no label names.
TEST(TopologyAwareGPUGateTest, AbsurdLabelsMakeNoIslands) {
  const std::vector<std::string> absurd = {"",        "-1",          "1e9", "99999999999999999999",
                                           "0x8",     "NaN",         " 8 ", "eight",
                                           "\u0668",  "8 GPUs",      "8.0", "+8",
                                           "0-7;0-7", "nvlink 0-64", "\xff"};
  std::mt19937 random(1);
  const auto pick = [&] { return absurd[random() % absurd.size()]; };
  for (int round = 0; round < 300; ++round) {
    auto harness = PluginHarness::Create(Descriptor(), R"({"unknown": "reject"})");
    ASSERT_TRUE(harness.ok());
    (*harness)->AddNode(NodeBuilder("n")
                            .Allocatable({{"nvidia.com/gpu", "8"}})
                            .Label("nvidia.com/gpu-topology", pick())
                            .Label("nvidia.com/gpu-island.a", pick())
                            .Label("nvidia.com/gpu-island.", pick())
                            .Annotation("accelerator.sched.io/gpu-islands", pick()));
    (*harness)->AddPod(PodBuilder("q")
                           .Requests({{"nvidia.com/gpu", "1"}})
                           .OnNode("n")
                           .Annotation("accelerator.sched.io/gpu-ids", pick())
                           .Annotation("scheduling.koordinator.sh/device-allocated", pick()));
    PodBuilder pod = PodBuilder("p")
                         .Requests({{"nvidia.com/gpu", "2"}})
                         .Label("training.kubeflow.org/operator-name", "pytorchjob-controller")
                         .Label("tensor-parallel-size", pick())
                         .Annotation("accelerator.sched.io/parallelism", pick());
    v1beta1::Container* container = pod.proto().mutable_containers(0);
    container->add_command(pick());
    container->add_args(pick());
    (*container->mutable_env())["WORLD_SIZE"] = pick();
    EXPECT_FALSE((*harness)->Filter(pod).at("n").ok());
  }
}

}  // namespace
}  // namespace outboard::topology_aware_gpu_gate
