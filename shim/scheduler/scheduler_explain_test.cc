// A group's scores, which a simulation asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SchedulerExplainTest : public ::testing::Test, public Observer {
 protected:
  // A group of the pods a and b, and the nodes n0 to n2.
  void Start(bool explain) {
    SchedulerOptions options;
    options.explain = explain;
    host_.CanAlso(v1beta1::CAPABILITY_GROUP_PLAN);
    scheduler_ =
        std::make_unique<Scheduler>(options, queue::QueueOptions(), &actions_, this, nullptr, now_);
    scheduler_->SetProfileNames({"p"});
    framework::ProfilePlan plan;
    plan.algorithm.name = "p";
    plan.algorithm.filter_plugins = {"Fit"};
    plan.algorithm.score_plugins = {{"First", 2}, {"Second", 1}};
    plan.permit = {{"h", {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.host_names = {"h"};
    plan.guard.resources = false;
    scheduler_->SetPlan(plan);
    scheduler_->SetHost("h", &host_, scheduler_->cluster()->AddHost({}), now_);
    for (int i = 0; i < 3; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.set_name(absl::StrCat("n", i));
      node->resource_version = absl::StrCat(++resource_version_);
      scheduler_->events()->OnNodeUpsert(node, now_);
    }
    for (const char* name : {"a", "b"}) {
      auto pod = std::make_shared<kube::PodObject>();
      pod->pod.set_uid(absl::StrCat("uid-", name));
      pod->pod.set_namespace_("ns");
      pod->pod.set_name(name);
      pod->pod.set_scheduler_name("p");
      (*pod->pod.mutable_labels())["job-name"] = "g";
      pod->resource_version = absl::StrCat(++resource_version_);
      scheduler_->events()->OnPodUpsert(pod, now_);
    }
    host_.cycle = [this](const auto&, v1beta1::PlanResponse* response) {
      *response = answer_;
      return absl::OkStatus();
    };
  }

  // The host puts a on n1 and b on n2, by scores of n1 and n2.
  SchedulerExplainTest() {
    answer_.mutable_evaluation()->mutable_pre_filter();
    answer_.mutable_plan()->mutable_group()->set_name("g");
    answer_.mutable_plan()->mutable_group()->set_needed(2);
    answer_.mutable_plan()->mutable_group()->set_max_schedulable(2);
    uint32_t slot = 1;
    for (const char* uid : {"uid-a", "uid-b"}) {
      v1beta1::PlannedPlacement* placement = answer_.mutable_plan()->add_placements();
      placement->set_pod_uid(uid);
      placement->set_slot(slot++);
      placement->set_processed(3);
      placement->set_feasible(2);
      placement->mutable_scored()->add_slots(1);
      placement->mutable_scored()->add_slots(2);
      v1beta1::PluginScores* scores = placement->mutable_score()->add_plugins();
      scores->set_plugin("First");
      scores->set_scores(std::string("\x0a\x05", 2));
    }
    v1beta1::PluginScores* second =
        answer_.mutable_plan()->mutable_placements(1)->mutable_score()->add_plugins();
    second->set_plugin("Second");
    second->set_scores(std::string("\x00\x64", 2));
  }

  struct Seen {
    std::string pod;
    std::vector<uint32_t> slots;
    std::vector<int64_t> totals;
    int plugins = 0;
  };
  std::vector<Seen> seen_;
  std::vector<std::string> messages_;
  v1beta1::PlanResponse answer_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::unique_ptr<Scheduler> scheduler_;

 private:
  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile&,
                   const framework::AlgorithmResult& result, const v1beta1::PlanResponse&,
                   absl::Duration) override {
    Seen& seen = seen_.emplace_back();
    seen.pod = pod.pod.name();
    for (const uint32_t position : result.feasible_positions)
      seen.slots.push_back(result.examined_slots[position]);
    seen.totals = result.totals;
    seen.plugins = result.explained.plugins_size();
  }
  void OnAttemptEnd(const kube::PodObject&, const std::string&, AttemptResult, const std::string&,
                    const std::string& message, absl::Duration) override {
    messages_.push_back(message);
  }

  NoClusterActions actions_;
  framework::ScriptedHost host_;
  int resource_version_ = 0;
};

TEST_F(SchedulerExplainTest, EachMemberHasTheScoresOfItsNodes) {
  Start(/*explain=*/true);
  ASSERT_TRUE(scheduler_->ScheduleOne(now_));
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_EQ(seen_[0].pod, "a");
  EXPECT_THAT(seen_[0].slots, ElementsAre(1, 2));
  EXPECT_THAT(seen_[0].totals, ElementsAre(20, 10));
  EXPECT_EQ(seen_[0].plugins, 1);
  EXPECT_EQ(seen_[1].pod, "b");
  EXPECT_THAT(seen_[1].totals, ElementsAre(20, 110));
  EXPECT_EQ(seen_[1].plugins, 2);
}

TEST_F(SchedulerExplainTest, UnaskedScoresAreIgnored) {
  answer_.mutable_plan()->mutable_placements(1)->mutable_scored()->add_slots(77);
  Start(/*explain=*/false);
  ASSERT_TRUE(scheduler_->ScheduleOne(now_));
  ASSERT_THAT(seen_, SizeIs(2));
  EXPECT_THAT(seen_[0].totals, IsEmpty());
  EXPECT_THAT(seen_[1].totals, IsEmpty());
}

TEST_F(SchedulerExplainTest, ScoresOfOtherNodesAreRefused) {
  answer_.mutable_plan()->mutable_placements(1)->mutable_scored()->set_slots(1, 77);
  Start(/*explain=*/true);
  ASSERT_TRUE(scheduler_->ScheduleOne(now_));
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], HasSubstr("no node in slot 77"));
}

TEST_F(SchedulerExplainTest, TooFewScoresAreRefused) {
  answer_.mutable_plan()->mutable_placements(1)->mutable_score()->mutable_plugins(0)->set_scores(
      "\x01");
  Start(/*explain=*/true);
  ASSERT_TRUE(scheduler_->ScheduleOne(now_));
  ASSERT_THAT(messages_, SizeIs(1));
  EXPECT_THAT(messages_[0], HasSubstr("First scored 1 of 2 nodes"));
}

}  // namespace
}  // namespace outboard::scheduler
