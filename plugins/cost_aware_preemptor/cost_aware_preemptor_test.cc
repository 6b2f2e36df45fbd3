#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/preemption_harness.h"

namespace outboard::cost_aware_preemptor {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using sdk::testing::PreemptionHarness;
using ::testing::ElementsAre;

constexpr int64_t kNow = 1767614400;  // 2026-01-05T12:00:00Z

TEST(CostAwarePreemptorTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/cost_aware_preemptor/testdata");
}

std::unique_ptr<PreemptionHarness> Harness(
    const std::vector<sdk::PluginDescriptor>& filters = {sdk::testing::RoomFilter()},
    const std::string& args = "") {
  auto harness = PreemptionHarness::Create(Descriptor(), filters, args);
  EXPECT_TRUE(harness.ok()) << harness.status();
  (*harness)->SetNow(absl::FromUnixSeconds(kNow));
  return *std::move(harness);
}

PodBuilder Pod(const std::string& name, const std::string& node, const std::string& type,
               const std::string& gpus) {
  PodBuilder pod(name);
  pod.OnNode(node).Label("workload-type", type).Requests({{"nvidia.com/gpu", gpus}});
  return pod;
}
PodBuilder Preemptor(const std::string& gpus) {
  return PodBuilder("p").Priority(10).Requests({{"nvidia.com/gpu", gpus}});
}

TEST(CostAwarePreemptorTest, CountsVictimsAndWorkLost) {
  auto harness = Harness();
  harness->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  harness->AddNode(NodeBuilder("n2").Allocatable({{"nvidia.com/gpu", "8"}}));
  PodBuilder trains = Pod("trains", "n1", "training", "4");
  trains.Annotation("outboard/checkpointing", "true")
      .Annotation("outboard/last-checkpoint-time", "2026-01-05T11:50:00Z");
  trains.proto().set_start_unix_seconds(kNow - 86400);
  harness->AddPod(trains);
  harness->AddPod(Pod("serves", "n1", "inference", "4"));
  harness->AddPod(Pod("stays", "n2", "training", "8"));
  const auto metric = [&](const std::string& what, const std::string& type) {
    return harness->Metric(absl::StrCat("outboard_cost_aware_preemptor_", what), {type});
  };
  EXPECT_EQ(metric("victims_total", "training"), 0);
  EXPECT_FALSE(harness->Attempt(Preemptor("8")).has_rejection());
  EXPECT_EQ(metric("victims_total", "training"), 1);
  EXPECT_EQ(metric("victims_total", "inference"), 1);
  EXPECT_EQ(metric("victims_total", "other"), 0);
  EXPECT_EQ(metric("work_lost_gpu_seconds_total", "training"), 2400);
  EXPECT_EQ(metric("work_lost_gpu_seconds_total", "inference"), 0);
  EXPECT_FALSE(harness->Attempt(Preemptor("4")).has_rejection());
  EXPECT_EQ(metric("victims_total", "training"), 1);
  EXPECT_EQ(metric("victims_total", "inference"), 2);
}

TEST(CostAwarePreemptorTest, CountsWhatWasUnknownOfVictims) {
  auto harness = Harness();
  harness->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  PodBuilder known = Pod("known", "n1", "other", "2");
  known.Annotation("outboard/last-checkpoint-time", "2026-01-05T11:50:00Z")
      .Annotation("outboard/run-seconds", "864000");
  known.proto().set_start_unix_seconds(kNow - 86400);
  harness->AddPod(known);
  PodBuilder started = Pod("started", "n1", "other", "2");
  started.proto().set_start_unix_seconds(kNow - 60);
  harness->AddPod(started);
  harness->AddPod(Pod("unknown", "n1", "other", "2"));
  harness->AddPod(Pod("serves", "n1", "inference", "2"));
  EXPECT_FALSE(harness->Attempt(Preemptor("8")).has_rejection());
  const auto unknown = [&](const char* fact) {
    return harness->Metric("outboard_cost_aware_preemptor_unknown_facts_total", {fact});
  };
  EXPECT_EQ(unknown("start"), 1);
  EXPECT_EQ(unknown("checkpoint"), 2);
  EXPECT_EQ(unknown("end"), 2);
}

// A JobSet's restarts are used up: its training must not be evicted any more.
TEST(CostAwarePreemptorTest, OwnersAreReadAgainWhenTheyChange) {
  auto harness = Harness();
  harness->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  PodBuilder trains = Pod("trains", "n1", "training", "8");
  trains.Label("jobset.sigs.k8s.io/jobset-name", "js");
  trains.proto().set_start_unix_seconds(kNow - 60);
  harness->AddPod(trains);
  const auto job_set = [&](const char* json) {
    v1beta1::ClusterObject object;
    v1beta1::GenericObject& generic = *object.mutable_generic_object();
    generic.set_resource("jobsets.v1alpha2.jobset.x-k8s.io");
    generic.set_namespace_("default");
    generic.set_name("js");
    generic.set_uid("uid-js");
    generic.set_resource_version("1");
    generic.set_json(json);
    harness->AddObject(object);
  };
  EXPECT_TRUE(harness->Attempt(Preemptor("8")).has_rejection());
  job_set(R"({"spec": {"failurePolicy": {"maxRestarts": 1}}})");
  EXPECT_FALSE(harness->Attempt(Preemptor("8")).has_rejection());
  job_set(R"({"spec": {"failurePolicy": {"maxRestarts": 1}},
              "status": {"restartsCountTowardsMax": 1}})");
  EXPECT_TRUE(harness->Attempt(Preemptor("8")).has_rejection());
}

// A pod's annotations are read again after each change, and only then.
TEST(CostAwarePreemptorTest, ACheckpointGrowsOldAndIsWrittenAgain) {
  auto harness = Harness();
  harness->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  PodBuilder trains = Pod("trains", "n1", "training", "8");
  trains.Annotation("outboard/checkpointing", "true")
      .Annotation("outboard/last-checkpoint-time", "2026-01-05T11:45:00Z");
  harness->AddPod(trains);
  EXPECT_EQ(harness->Attempt(Preemptor("8")).candidates().candidates_size(), 1);
  harness->SetNow(absl::FromUnixSeconds(kNow + 15 * 60 + 1));
  EXPECT_THAT(harness->Attempt(Preemptor("8")).rejection().status().reasons(),
              ElementsAre("preemption: 0/1 nodes are available: 1 No preemption victims found for "
                          "incoming pod. Training pods that are spared: 1 whose checkpoint is "
                          "older than 30m0s."));
  trains.Annotation("outboard/last-checkpoint-time", "2026-01-05T12:10:00Z");
  harness->AddPod(trains);
  EXPECT_EQ(harness->Attempt(Preemptor("8")).candidates().candidates_size(), 1);
}

class Warnings final : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity, const char*, const char*, int, const struct tm*,
            const char* message, size_t length) override {
    texts.emplace_back(message, length);
  }
  std::vector<std::string> texts;
};

TEST(CostAwarePreemptorTest, WarnsOnceOfWhatCannotBeRead) {
  Warnings warnings;
  auto harness = Harness();
  harness->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  PodBuilder trains = Pod("trains", "n1", "training", "8");
  for (const char* key : {"outboard/checkpointing", "outboard/last-checkpoint-time",
                          "volcano.sh/last-checkpoint-time", "outboard/start-time",
                          "outboard/estimated-end", "outboard/restart-seconds"})
    trains.Annotation(key, "soon");
  harness->AddPod(trains);
  EXPECT_TRUE(harness->Attempt(Preemptor("8")).has_rejection());
  EXPECT_EQ(warnings.texts.size(), 6u);
  trains.Label("unrelated", "changed");
  harness->AddPod(trains);
  EXPECT_TRUE(harness->Attempt(Preemptor("8")).has_rejection());
  EXPECT_EQ(warnings.texts.size(), 6u);
}

// Accepts a pod while there are fewer than two, but fails on an empty node.
class Fragile : public sdk::Plugin, public sdk::NodeFilterPlugin {
 public:
  sdk::Verdict FilterNode(const sdk::Attempt&, const sdk::NodeView& node) const override {
    if (node.pods().size() >= 2) return sdk::Verdict::Unschedulable("Too many pods");
    return node.pods().empty() ? sdk::Verdict::Error("lost count") : sdk::Verdict::Success();
  }
};

TEST(CostAwarePreemptorTest, APluginThatFailsIsNamedUnlessAnotherNodeHelps) {
  sdk::PluginDescriptor fragile;
  fragile.name = "Fragile";
  fragile.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  fragile.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Fragile>();
  };
  auto harness = Harness({fragile});
  harness->AddNode(NodeBuilder("n1"));
  harness->AddPod(Pod("a", "n1", "inference", "1"));
  harness->AddPod(Pod("b", "n1", "inference", "1"));
  const v1beta1::PostFilterResponse failed = harness->Attempt(Preemptor("1"));
  EXPECT_EQ(failed.rejection().status().code(), v1beta1::CODE_ERROR);
  EXPECT_THAT(failed.rejection().status().reasons(),
              ElementsAre("preemption: running \"Fragile\" filter plugin: lost count"));
  harness->AddNode(NodeBuilder("n2"));
  harness->AddPod(Pod("c", "n2", "inference", "1"));
  PodBuilder important = Pod("d", "n2", "inference", "1");
  harness->AddPod(important.Priority(10));
  const v1beta1::PostFilterResponse helped = harness->Attempt(Preemptor("1"));
  ASSERT_EQ(helped.candidates().candidates_size(), 1);
  EXPECT_THAT(helped.candidates().candidates(0).victim_uids(), ElementsAre("default/c"));
}

// Of a thousand nodes that could help, the best is found with few dry runs.
TEST(CostAwarePreemptorTest, TheBestOfManyNodesIsFound) {
  for (const int best : {0, 500, 999}) {
    auto harness = Harness();
    for (int i = 0; i < 1000; ++i) {
      const std::string node = absl::StrCat("n", i);
      harness->AddNode(NodeBuilder(node).Allocatable({{"nvidia.com/gpu", "8"}}));
      for (int j = 0; j < 2; ++j) {
        PodBuilder serves = Pod(absl::StrCat(node, "-", j), node, "inference", "4");
        serves.Annotation("outboard/restart-seconds", absl::StrCat(i == best ? 20 : 21 + j));
        harness->AddPod(serves);
      }
    }
    const v1beta1::PostFilterResponse response = harness->Attempt(Preemptor("8"));
    EXPECT_GE(response.candidates().candidates_size(), 8);
    EXPECT_EQ(harness->cluster().node(response.candidates().candidates(0).slot()).name(),
              absl::StrCat("n", best));
  }
}

// The nodes with the lowest bound are tried first, even if they turn out to be expensive.
TEST(CostAwarePreemptorTest, ANodeThatLooksDearerIsTriedOutWhereItMayBeTheBest) {
  auto harness = Harness();
  const auto serves = [&](const std::string& node, const std::string& gpus, const char* seconds) {
    PodBuilder pod = Pod(absl::StrCat(node, "-", gpus), node, "inference", gpus);
    harness->AddPod(pod.Annotation("outboard/restart-seconds", seconds));
  };
  for (int i = 0; i < 30; ++i) {
    const std::string node = absl::StrCat("n", i);
    harness->AddNode(NodeBuilder(node).Allocatable({{"nvidia.com/gpu", "8"}}));
    if (i == 29) {
      serves(node, "8", "50");
    } else {
      serves(node, "1", "1");
      serves(node, "7", "100");
    }
  }
  const v1beta1::PostFilterResponse response = harness->Attempt(Preemptor("8"));
  EXPECT_THAT(response.candidates().candidates(0).victim_uids(), ElementsAre("default/n29-8"));
}

}  // namespace
}  // namespace outboard::cost_aware_preemptor
