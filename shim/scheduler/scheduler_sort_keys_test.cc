// The queue's order by a host's sort keys: when the host is asked, and how long keys are valid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler::scheduler_sort_keys_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

class RecordedBinds final : public NoClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { bound.push_back(order.pod->pod.name()); }
  std::vector<std::string> bound;
};

class SortKeysTest : public ::testing::Test {
 protected:
  SortKeysTest()
      : scheduler_(SchedulerOptions(), queue::QueueOptions(), &effects_, &observer_, nullptr,
                   now_) {
    scheduler_.SetProfileNames({kProfile});
    SetPlan(/*reads_attempts=*/false);
    host_.sort_keys = [this](const v1beta1::SortKeysRequest& request) { return Answer(request); };
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("uid-n");
    node->node.set_name("n");
    node->node.mutable_allocatable()->set_pods(100);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  void SetPlan(bool reads_attempts) {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.host_names = {kHost};
    plan.sort_host = kHost;
    plan.sort_reads_attempts = reads_attempts;
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
  }
  absl::StatusOr<v1beta1::SortKeysResponse> Answer(const v1beta1::SortKeysRequest& request) {
    queued_.emplace_back(request.queued().begin(), request.queued().end());
    std::vector<std::string>& asked = asked_.emplace_back();
    v1beta1::SortKeysResponse response;
    for (const std::string& uid : request.pod_uids()) {
      asked.push_back(uid);
      response.add_keys(keys_[uid]);
    }
    if (fails_) return absl::DeadlineExceededError("too slow");
    return response;
  }
  void Attach(framework::HostClient* host) {
    if (cursor_ != 0) scheduler_.cluster()->RemoveHost(cursor_);
    cursor_ = scheduler_.cluster()->AddHost({});
    scheduler_.cluster()->TakeChanges(cursor_, now_);
    scheduler_.SetHost(kHost, host, cursor_, now_);
  }
  void Put(const std::string& name, const std::string& key) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(name);
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    keys_[name] = key;
    scheduler_.events()->OnPodUpsert(pod, now_);
  }
  void RejectAll() {
    host_.cycle = [this](const v1beta1::PlanRequest&, v1beta1::PlanResponse* response) {
      host_.Infeasible("Fit", "full", response);
      return absl::OkStatus();
    };
  }
  void PushChanged(const std::vector<std::string>& uids) {
    auto* changed = host_.pushes.emplace_back().mutable_sort_keys_changed();
    for (const std::string& uid : uids) changed->add_pod_uids(uid);
    changed->set_all_pods(uids.empty());
  }
  std::vector<std::string> ScheduleAll() {
    while (scheduler_.ScheduleOne(now_)) {
    }
    return std::exchange(effects_.bound, {});
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  std::map<std::string, std::string> keys_;
  std::vector<std::vector<std::string>> asked_;
  std::vector<std::vector<v1beta1::QueuedPodInfo>> queued_;  // of these calls
  bool fails_ = false;
  RecordedBinds effects_;
  Observer observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  cache::ClusterState::Cursor cursor_ = 0;
};

TEST_F(SortKeysTest, PodsAreTriedInTheOrderOfTheirKeys) {
  Attach(&host_);
  Put("c", "3");
  Put("a", "1");
  Put("b", "2");
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("c"), ElementsAre("a"), ElementsAre("b")));
  EXPECT_THAT(ScheduleAll(), ElementsAre("a", "b", "c"));
}

TEST_F(SortKeysTest, ChangedKeysAreAskedForTogether) {
  Attach(&host_);
  Put("a", "1");
  Put("b", "2");
  Put("c", "3");
  asked_.clear();
  keys_ = {{"a", "8"}, {"b", "9"}, {"c", "3"}};
  PushChanged({"a", "b", "gone"});
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("a", "b")));
  EXPECT_THAT(ScheduleAll(), ElementsAre("c", "a", "b"));
}

TEST_F(SortKeysTest, AllKeysAreRequestedIfNoPodIsNamed) {
  Attach(&host_);
  Put("a", "1");
  Put("b", "2");
  asked_.clear();
  keys_ = {{"a", "2"}, {"b", "1"}};
  PushChanged({});
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(UnorderedElementsAre("a", "b")));
  EXPECT_THAT(ScheduleAll(), ElementsAre("b", "a"));
}

TEST_F(SortKeysTest, AHostThatConnectsLaterIsAskedForAllKeys) {
  Put("a", "2");
  Put("b", "1");
  EXPECT_THAT(asked_, IsEmpty());
  Attach(&host_);
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(UnorderedElementsAre("a", "b")));
  scheduler_.Tick(now_ + absl::Minutes(1));
  EXPECT_EQ(asked_.size(), 1u) << "and not again";
  EXPECT_THAT(ScheduleAll(), ElementsAre("b", "a"));
}

TEST_F(SortKeysTest, AHostThatTakesOverIsAskedAboutAll) {
  Attach(&host_);
  Put("a", "1");
  Put("b", "2");
  asked_.clear();
  framework::ScriptedHost next;
  keys_ = {{"a", "2"}, {"b", "1"}};
  next.sort_keys = host_.sort_keys;
  Attach(&next);
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(UnorderedElementsAre("a", "b")));
  EXPECT_THAT(ScheduleAll(), ElementsAre("b", "a"));
  scheduler_.SetHost(kHost, nullptr, 0, now_);
}

TEST_F(SortKeysTest, WhatWasNotAnsweredIsAskedForAgainASecondLater) {
  Attach(&host_);
  scheduler_.Tick(now_);
  Put("b", "1");
  fails_ = true;
  Put("a", "2");
  asked_.clear();
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("a")));
  scheduler_.Tick(now_ + absl::Milliseconds(900));
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(1));
  fails_ = false;
  scheduler_.Tick(now_ + absl::Seconds(1));
  EXPECT_EQ(asked_.size(), 2u);
  scheduler_.Tick(now_ + absl::Seconds(2));
  EXPECT_EQ(asked_.size(), 2u);
  EXPECT_THAT(ScheduleAll(), ElementsAre("b", "a"));
}

TEST_F(SortKeysTest, AHostThatIsSilentIsAskedNoMoreUntilItAnswersAProbe) {
  Attach(&host_);
  scheduler_.Tick(now_);
  fails_ = true;
  Put("a", "3");
  Put("b", "2");
  Put("c", "1");
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  EXPECT_EQ(scheduler_.NextWakeup(now_), now_ + absl::Seconds(5)) << "when pods are parked";
  asked_.clear();
  now_ += absl::Seconds(10);
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, IsEmpty());
  fails_ = false;
  scheduler_.OnProbeAnswered(kHost, now_);
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_, ElementsAre(UnorderedElementsAre("a", "b", "c")));
  EXPECT_THAT(ScheduleAll(), ElementsAre("c", "b", "a"));
}

TEST_F(SortKeysTest, AfterAnAttemptAKeyThatDependsOnAttemptsIsAskedForAgain) {
  SetPlan(/*reads_attempts=*/true);
  RejectAll();
  Attach(&host_);
  scheduler_.Tick(now_);
  Put("a", "1");
  Put("b", "2");
  ASSERT_EQ(queued_.size(), 2u);
  ASSERT_EQ(queued_[0].size(), 1u) << "one for each pod";
  EXPECT_EQ(queued_[0][0].attempts(), 0u);
  EXPECT_THAT(ScheduleAll(), IsEmpty());
  EXPECT_EQ(asked_.size(), 2u) << "not during the attempts";
  now_ += absl::Seconds(1);
  scheduler_.Tick(now_);
  ASSERT_EQ(asked_.size(), 3u);
  EXPECT_THAT(asked_[2], UnorderedElementsAre("a", "b")) << "together";
  for (const v1beta1::QueuedPodInfo& queued : queued_[2]) {
    EXPECT_EQ(queued.attempts(), 1u);
    // A second before, by the wall clock, which is not the scheduler's.
    const absl::Time first = absl::FromUnixMicros(queued.initial_attempt_unix_micros());
    EXPECT_LT(absl::AbsDuration(absl::Now() - absl::Seconds(1) - first), absl::Minutes(1));
  }
  scheduler_.Tick(now_ + absl::Seconds(1));
  EXPECT_EQ(asked_.size(), 3u);
}

TEST_F(SortKeysTest, WithoutTheFieldAttemptsAreNeitherSentNorAReasonToAskAgain) {
  RejectAll();
  Attach(&host_);
  scheduler_.Tick(now_);
  Put("a", "1");
  EXPECT_THAT(ScheduleAll(), IsEmpty());
  scheduler_.Tick(now_ + absl::Seconds(1));
  EXPECT_THAT(asked_, ElementsAre(ElementsAre("a")));
  EXPECT_THAT(queued_, ElementsAre(IsEmpty()));
}

TEST_F(SortKeysTest, AKeyThatIsTooLongIsNone) {
  Attach(&host_);
  Put("a", std::string(65, 'x'));
  Put("b", std::string(64, 'x'));
  scheduler_.Tick(now_);
  EXPECT_THAT(asked_.back(), ElementsAre("a")) << "asked again";
  EXPECT_THAT(ScheduleAll(), UnorderedElementsAre("a", "b"));
}

TEST_F(SortKeysTest, OfManyPodsAsManyAreAskedForAtATimeAsACallTakes) {
  for (int i = 0; i < 5000; ++i) Put(absl::StrCat("p", i), absl::StrCat(i));
  Attach(&host_);
  scheduler_.Tick(now_);
  ASSERT_EQ(asked_.size(), 2u);
  EXPECT_EQ(asked_[0].size(), 4096u);
  EXPECT_EQ(asked_[1].size(), 904u);
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_sort_keys_test
