#include "plugins/backfill/backfill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "plugin_host/sdk/run_facts/run_labels.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/backfill/line.h"
#include "plugins/backfill/run_times.h"

namespace outboard::backfill {
namespace {

using sdk::Verdict;
using sdk::run_labels::kPreemptible;
using sdk::run_labels::kRunSeconds;
using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

constexpr char kPodGroups[] = "podgroups.v1alpha1.scheduling.x-k8s.io";
const absl::Time kNow = absl::FromUnixSeconds(1767614400);  // 2026-01-05 12:00

TEST(Backfill, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/backfill/testdata"); }

TEST(RunTimesTest, Texts) {
  EXPECT_EQ(DurationText(absl::Seconds(-3)), "0s");
  EXPECT_EQ(DurationText(absl::Seconds(59)), "59s");
  EXPECT_EQ(DurationText(absl::Seconds(61)), "1m");
  EXPECT_EQ(DurationText(absl::Hours(2)), "2h");
  EXPECT_EQ(DurationText(absl::Minutes(150)), "2h30m");
  EXPECT_EQ(ClockText(kNow + absl::Minutes(125), kNow), "14:05");
  EXPECT_EQ(ClockText(kNow + absl::Hours(12), kNow), "2026-01-06 00:00");
}

TEST(RunTimesTest, ADeclaredEndCountsUntilItIsWrongAndAnEnforcedOneAlways) {
  constexpr absl::Duration kOverrun = absl::Minutes(5);
  const auto at = [](int minutes) { return kNow + absl::Minutes(minutes); };
  RunTime its;
  its.end = at(10);
  EXPECT_EQ(its.EndAt(kNow, kOverrun), at(10));
  EXPECT_EQ(its.EndAt(at(10), kOverrun), at(15));
  EXPECT_EQ(its.EndAt(at(14), kOverrun), at(15));
  EXPECT_EQ(its.EndAt(at(15), kOverrun), std::nullopt);
  its.limit = at(60);
  EXPECT_EQ(its.EndAt(kNow, kOverrun), at(10));
  EXPECT_EQ(its.EndAt(at(15), kOverrun), at(60));
  EXPECT_EQ(its.EndAt(at(61), kOverrun), at(66)) << "a controller is late";
  its.gone = at(1);
  EXPECT_EQ(its.EndAt(kNow, kOverrun), at(1));
  RunTime pending;
  EXPECT_EQ(pending.EndAt(kNow, kOverrun), std::nullopt);
  pending.run = absl::Minutes(30);
  EXPECT_EQ(pending.EndAt(kNow, kOverrun), at(30));
  EXPECT_EQ(pending.WithoutEstimate().EndAt(kNow, kOverrun), std::nullopt);
}

class BackfillTest : public testing::Test {
 protected:
  void SetUp() override {
    auto harness = PluginHarness::Create(Descriptor());
    ASSERT_TRUE(harness.ok()) << harness.status();
    harness_ = *std::move(harness);
    harness_->SetNow(kNow);
    for (const char* name : {"n1", "n2"})
      harness_->AddNode(NodeBuilder(name).Allocatable({{"nvidia.com/gpu", "8"}}));
  }
  static v1beta1::Pod Pod(const std::string& name, int gpus, int created = 100) {
    PodBuilder pod(name);
    pod.Requests({{"nvidia.com/gpu", std::to_string(gpus)}});
    pod.proto().set_creation_unix_seconds(created);
    return pod;
  }
  static v1beta1::Pod Running(const std::string& name, const std::string& node, int gpus,
                              absl::Duration left) {
    v1beta1::Pod pod = Pod(name, gpus);
    pod.set_node_name(node);
    pod.set_start_unix_seconds(absl::ToUnixSeconds(kNow));
    (*pod.mutable_annotations())[kRunSeconds] = std::to_string(absl::ToInt64Seconds(left));
    return pod;
  }
  Verdict On(const std::string& node, const v1beta1::Pod& pod) {
    const auto passed = harness_->PreFilter(pod);
    if (passed.verdict.skip()) return Verdict::Success();
    if (!passed.verdict.ok()) return passed.verdict;
    return harness_->Filter(pod).at(node);
  }

  std::unique_ptr<PluginHarness> harness_;
};

TEST_F(BackfillTest, APodThatHasNotStartedYetIsTakenToStartNow) {
  v1beta1::Pod assumed = Pod("a", 8);
  (*assumed.mutable_annotations())[kRunSeconds] = "3600";
  harness_->AddPod(assumed);
  harness_->Place("default/a", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(9)));
  harness_->AddPod(Pod("train", 8));
  EXPECT_EQ(On("n1", Pod("p", 1, 200)).reasons().at(0),
            "node is reserved for default/train from 13:00 on (no run time declared, 1h left)");
  harness_->SetNow(kNow + absl::Minutes(10));
  EXPECT_EQ(On("n1", Pod("p", 1, 200)).reasons().at(0),
            "node is reserved for default/train from 13:10 on (no run time declared, 1h left)");
}

TEST_F(BackfillTest, TheNextInLineIsReservedForOnceTheFirstHasItsPlaceOrGoes) {
  harness_->AddPod(Running("a", "n1", 8, absl::Hours(1)));
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(2)));
  harness_->AddPod(Pod("first", 8, 10));
  harness_->AddPod(Pod("second", 8, 20));
  const v1beta1::Pod p = Pod("p", 1, 200);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("default/first from 13:00"));
  EXPECT_TRUE(On("n2", p).ok());
  harness_->RemovePod("default/a");
  harness_->AddPod(Running("first", "n1", 8, absl::Hours(5)));
  EXPECT_TRUE(On("n1", p).ok());
  EXPECT_THAT(On("n2", p).reasons().at(0), testing::HasSubstr("default/second from 14:00"));
  harness_->RemovePod("default/second");
  EXPECT_TRUE(On("n2", p).ok());
}

TEST_F(BackfillTest, NothingIsKeptForAPodThatOthersKeepOut) {
  harness_->AddPod(Running("b", "n1", 8, absl::Hours(1)));
  harness_->AddPod(Pod("odd", 8, 10));
  harness_->AddPod(Pod("next", 8, 20));
  const v1beta1::Pod p = Pod("p", 1, 200);
  const std::string for_odd = "node is reserved for default/odd (no run time declared)";
  EXPECT_EQ(On("n2", p).reasons().at(0), for_odd);
  EXPECT_TRUE(On("n2", Pod("odd", 8, 10)).ok()) << "it is tried, and another plugin rejects it";
  harness_->SetNow(kNow + Line::kSettles - absl::Seconds(1));
  EXPECT_EQ(On("n2", p).reasons().at(0), for_odd) << "it may be in backoff";
  harness_->Tick();
  EXPECT_THAT(harness_->TakeActivated(), testing::IsEmpty());
  harness_->SetNow(kNow + Line::kSettles);
  harness_->Tick();
  EXPECT_THAT(harness_->TakeActivated(), testing::ElementsAre("default/p"));
  EXPECT_EQ(On("n2", p).reasons().at(0), "node is reserved for default/next (no run time declared)")
      << "the next in line gets the same time";
  harness_->SetNow(kNow + 2 * Line::kSettles);
  harness_->Tick();
  EXPECT_THAT(harness_->TakeActivated(), testing::ElementsAre("default/p"));
  EXPECT_TRUE(On("n2", p).ok());
  harness_->Tick();
  EXPECT_THAT(harness_->TakeActivated(), testing::IsEmpty());
  // Room is kept again for a unit that stops fitting; once it fits, its time starts again.
  harness_->AddPod(Running("c", "n2", 8, absl::Hours(2)));
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("default/odd from 13:00 on"));
  harness_->RemovePod("default/c");
  EXPECT_EQ(On("n2", p).reasons().at(0), for_odd);
}

TEST_F(BackfillTest, OnceRoomIsNotTakenBackItIsKeptFromTheEndOn) {
  v1beta1::Pod borrower = Running("b", "n1", 8, absl::Hours(1));
  (*borrower.mutable_annotations())[kPreemptible] = "true";
  harness_->AddPod(borrower);
  harness_->AddPod(Running("c", "n2", 8, absl::Hours(2)));
  v1beta1::Pod train = Pod("train", 8);
  train.set_priority(1);
  harness_->AddPod(train);
  v1beta1::Pod p = Pod("p", 1, 200);
  EXPECT_EQ(On("n1", p).reasons().at(0),
            "node is reserved for default/train (no run time declared)");
  harness_->SetNow(kNow + Line::kSettles);
  EXPECT_EQ(On("n1", p).reasons().at(0),
            "node is reserved for default/train from 13:00 on (no run time declared, 59m left)");
}

TEST_F(BackfillTest, APodThatRanLongerThanItDeclaredIsNotTrustedAgain) {
  const auto metric = [&](const char* name) {
    return harness_->Metric(name, {"default-scheduler"});
  };
  v1beta1::Pod a = Running("a", "n1", 8, absl::Minutes(10));
  harness_->AddPod(a);
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(9)));
  harness_->AddPod(Pod("train", 8));
  const v1beta1::Pod p = Pod("p", 1, 200);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 12:10 on"));
  harness_->SetNow(kNow + absl::Minutes(14));
  harness_->Tick();
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 12:15 on"));
  EXPECT_EQ(metric("outboard_backfill_overruns_total"), 0);
  EXPECT_EQ(metric("outboard_backfill_unknown_ends"), 0);

  harness_->SetNow(kNow + absl::Minutes(15));
  EXPECT_TRUE(On("n1", p).ok());
  EXPECT_THAT(On("n2", p).reasons().at(0), testing::HasSubstr("from 21:00 on"));
  harness_->Tick();
  harness_->Tick();
  EXPECT_EQ(metric("outboard_backfill_overruns_total"), 1);
  EXPECT_EQ(metric("outboard_backfill_unknown_ends"), 1);
  // It declares another time, which would be over at 12:30.
  (*a.mutable_annotations())[kRunSeconds] = "1800";
  harness_->AddPod(a);
  EXPECT_TRUE(On("n1", p).ok());
  EXPECT_THAT(On("n2", p).reasons().at(0), testing::HasSubstr("from 21:00 on"));
  // The kubelet ends it at 13:00.
  a.set_active_deadline_seconds(3600);
  harness_->AddPod(a);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 13:00 on"));
  harness_->Tick();
  EXPECT_EQ(metric("outboard_backfill_overruns_total"), 1);
  EXPECT_EQ(metric("outboard_backfill_unknown_ends"), 0);
}

TEST_F(BackfillTest, EndsFollowWhatATrainJobReports) {
  constexpr char kTrainJobs[] = "trainjobs.v1alpha1.trainer.kubeflow.org";
  ObjectStore store(harness_.get());
  const auto report = [&](int seconds) {
    store.Apply(kTrainJobs, "default", "t",
                R"({"status": {"trainerStatus": {"lastUpdatedTime": "2026-01-05T12:00:00Z",
                    "estimatedRemainingSeconds": )" +
                    std::to_string(seconds) + "}}}");
  };
  v1beta1::Pod a = Pod("a", 8);
  a.set_node_name("n1");
  (*a.mutable_labels())["jobset.sigs.k8s.io/jobset-name"] = "t";
  harness_->AddPod(a);
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(9)));
  harness_->AddPod(Pod("train", 8));
  const v1beta1::Pod p = Pod("p", 1, 200);
  EXPECT_TRUE(On("n1", p).ok());
  report(3600);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 13:00 on"));
  report(1200);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 12:20 on"));
  store.Delete(kTrainJobs, "default", "t");
  EXPECT_TRUE(On("n1", p).ok());
}

TEST_F(BackfillTest, MembersOfAPodGroupAreOneUnitAndThoseThatArePlacedCount) {
  ObjectStore store(harness_.get());
  store.Apply(kPodGroups, "default", "g", R"({"spec": {"minMember": 3}})");
  harness_->AddPod(Running("a", "n1", 8, absl::Hours(1)));
  harness_->AddPod(Running("b", "n2", 4, absl::Hours(2)));
  const auto member = [](const std::string& name) {
    v1beta1::Pod pod = Pod(name, 4, 10);
    (*pod.mutable_labels())["scheduling.x-k8s.io/pod-group"] = "g";
    return pod;
  };
  for (const char* name : {"m0", "m1", "m2"}) harness_->AddPod(member(name));
  EXPECT_TRUE(On("n2", member("m0")).ok());
  // All of n1 from 13:00 on, and four GPUs of n2.
  EXPECT_THAT(On("n1", Pod("p", 1, 200)).reasons().at(0),
              testing::HasSubstr("default/g from 13:00 on"));
  EXPECT_THAT(On("n2", Pod("p", 1, 200)).reasons().at(0),
              testing::HasSubstr("default/g from 13:00 on"));
  harness_->Place("default/m2", v1beta1::PLACEMENT_STATE_WAITING, "n2");
  EXPECT_THAT(On("n1", Pod("p", 1, 200)).reasons().at(0),
              testing::HasSubstr("default/g from 13:00 on"));
  harness_->RemovePod("default/a");
  EXPECT_THAT(On("n1", Pod("p", 1, 200)).reasons().at(0),
              testing::HasSubstr("node is reserved for default/g ("));
  harness_->Place("default/m0", v1beta1::PLACEMENT_STATE_WAITING, "n1");
  EXPECT_THAT(On("n1", Pod("p", 8, 200)).reasons().at(0),
              testing::HasSubstr("node is reserved for default/g ("));
  EXPECT_FALSE(On("n1", Pod("p", 1, 200)).ok());
  harness_->Place("default/m1", v1beta1::PLACEMENT_STATE_WAITING, "n1");
  EXPECT_TRUE(On("n1", Pod("p", 1, 200)).ok());
}

TEST_F(BackfillTest, PodsOfADeletedNodeReleaseNothingElsewhere) {
  harness_->AddPod(Running("a", "n1", 8, absl::Hours(1)));
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(2)));
  harness_->AddPod(Pod("train", 8));
  const v1beta1::Pod p = Pod("p", 1, 200);
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 13:00 on"));
  harness_->RemoveNode("n1");
  harness_->AddNode(NodeBuilder("n3").Allocatable({{"nvidia.com/gpu", "7"}}));
  EXPECT_THAT(On("n2", p).reasons().at(0), testing::HasSubstr("from 14:00 on"));
  EXPECT_TRUE(On("n3", p).ok());
  harness_->AddNode(NodeBuilder("n1").Allocatable({{"nvidia.com/gpu", "8"}}));
  EXPECT_THAT(On("n1", p).reasons().at(0), testing::HasSubstr("from 13:00 on"));
}

// Of two pods on one node, the pod that ends by itself is counted once, whichever a dry run
// removes.
TEST_F(BackfillTest, ReleasedAmountsDependOnThePresentPods) {
  harness_->AddPod(Running("a", "n1", 4, absl::Hours(1)));
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(9)));
  harness_->AddPod(Pod("train", 8));
  const v1beta1::Pod p = Pod("p", 4, 200);
  harness_->PreFilter(p);
  EXPECT_FALSE(harness_->Filter(p).at("n1").ok());
  harness_->RemovePod("default/a");
  EXPECT_FALSE(harness_->Filter(p).at("n1").ok()) << "the same attempt continues";
}

TEST_F(BackfillTest, ARestartedHostReservesTheSame) {
  harness_->AddPod(Running("a", "n1", 8, absl::Hours(1)));
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(2)));
  harness_->AddPod(Pod("train", 8));
  const Verdict before = On("n1", Pod("p", 1, 200));
  SetUp();
  harness_->AddPod(Pod("p", 1, 200));
  harness_->AddPod(Pod("train", 8));
  harness_->AddPod(Running("b", "n2", 8, absl::Hours(2)));
  harness_->AddPod(Running("a", "n1", 8, absl::Hours(1)));
  EXPECT_EQ(On("n1", Pod("p", 1, 200)), before);
}

}  // namespace
}  // namespace outboard::backfill
