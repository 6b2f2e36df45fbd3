// Failed calls at every point open the host's breaker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler::scheduler_breaker_test {
namespace {

using ::testing::SizeIs;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

class Binds final : public NoClusterActions {
 public:
  void Bind(const BindOrder& order, absl::Time) override { binds.push_back(order); }
  std::vector<BindOrder> binds;
};

// One node; Gang reserves and permits pods of jobs.
class BreakerTest : public ::testing::Test {
 protected:
  BreakerTest() : scheduler_({}, queue::QueueOptions(), &actions_, &observer_, nullptr, now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.host_names = {kHost};
    plan.reserve = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['job-name']"}}}}};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    cursor_ = scheduler_.cluster()->AddHost({});
    scheduler_.SetHost(kHost, &host_, cursor_, now_);
  }
  void AddNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_pods(10);
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  void AddPod(const std::string& name, const std::string& job = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name(kProfile);
    if (!job.empty()) (*pod->pod.mutable_labels())["job-name"] = job;
    pod->pod.add_containers();
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
  }

  void ExpectHeldBackAfterThreePods() {
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_FALSE(scheduler_.IsHeldBack(kHost)) << name;
      AddPod(name, "train");
      ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    }
    EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  int resource_version_ = 0;
  Binds actions_;
  Observer observer_;
  framework::ScriptedHost host_;
  Scheduler scheduler_;
  cache::ClusterState::Cursor cursor_ = 0;
};

TEST(Breaker, CountsEachKindOfCallApart) {
  using framework::HostCall;
  const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);
  framework::Breaker breaker;
  breaker.SetLimit(2);
  EXPECT_FALSE(breaker.OnFailure(HostCall::kAlgorithm, kNow));
  breaker.OnAnswer(HostCall::kUnreserve);
  EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, kNow)) << "a good Unreserve hides nothing";
  EXPECT_TRUE(breaker.open());
  EXPECT_TRUE(breaker.OnProbeAnswered(kNow));
  EXPECT_FALSE(breaker.OnFailure(HostCall::kUnreserve, kNow)) << "the first of its kind";
  EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, kNow)) << "half open";
  EXPECT_TRUE(breaker.OnProbeAnswered(kNow + framework::Breaker::kFirstPause));
  breaker.OnAnswer(HostCall::kAlgorithm);
  EXPECT_FALSE(breaker.OnFailure(HostCall::kAlgorithm, kNow));
  breaker.Reset();
  EXPECT_FALSE(breaker.OnFailure(HostCall::kAlgorithm, kNow));
}

// A host that answers probes, but no calls, would otherwise block all hosts' pods for one deadline
// after each probe.
TEST(Breaker, StaysOpenForLongerEachTime) {
  using framework::HostCall;
  framework::Breaker breaker;
  breaker.SetLimit(2);
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  breaker.OnFailure(HostCall::kAlgorithm, now);
  EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, now));
  EXPECT_TRUE(breaker.OnProbeAnswered(now)) << "at once, the first time";
  for (const int seconds : {2, 4, 8, 16, 30, 30}) {
    EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, now));
    now += absl::Seconds(seconds);
    EXPECT_FALSE(breaker.OnProbeAnswered(now - absl::Milliseconds(1))) << seconds;
    EXPECT_TRUE(breaker.open());
    EXPECT_TRUE(breaker.OnProbeAnswered(now)) << seconds;
  }
  // An answer to that kind of call ends it; another kind's does not.
  breaker.OnAnswer(HostCall::kPermit);
  EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, now));
  EXPECT_FALSE(breaker.OnProbeAnswered(now));
  now += absl::Seconds(30);
  EXPECT_TRUE(breaker.OnProbeAnswered(now));
  breaker.OnAnswer(HostCall::kAlgorithm);
  breaker.OnFailure(HostCall::kAlgorithm, now);
  EXPECT_TRUE(breaker.OnFailure(HostCall::kAlgorithm, now));
  EXPECT_TRUE(breaker.OnProbeAnswered(now));
}

// Each of these calls blocks all pods until its deadline. The good answers that the host gives to
// other calls of the same attempts do not hide it.
TEST_F(BreakerTest, FailuresAtReserveOpenTheBreaker) {
  AddNode("n1");
  host_.reserve = [](const v1beta1::ReserveRequest&) -> absl::StatusOr<v1beta1::ReserveResponse> {
    return absl::DeadlineExceededError("too slow");
  };
  ExpectHeldBackAfterThreePods();
  // One more failure after a probe opens it again, one good answer does not.
  scheduler_.OnProbeAnswered(kHost, now_);
  ASSERT_TRUE(scheduler_.ScheduleOne(now_));
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
  host_.reserve = nullptr;
  now_ += framework::Breaker::kFirstPause;
  scheduler_.OnProbeAnswered(kHost, now_);
  while (scheduler_.ScheduleOne(now_)) continue;
  EXPECT_FALSE(scheduler_.IsHeldBack(kHost));
  EXPECT_THAT(actions_.binds, SizeIs(3));
}

TEST_F(BreakerTest, IgnoredFailuresAtReserveAndPermitOpenTheBreaker) {
  AddNode("n1");
  const auto fail = [](const auto&) { return absl::DeadlineExceededError("too slow"); };
  for (const bool at_permit : {false, true}) {
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.host_names = {kHost};
    const framework::HostExtensionPoint point = {kHost, {{"Gang", {}}}, /*fail_open=*/true};
    (at_permit ? plan.permit : plan.reserve) = {point};
    plan.guard.resources = false;
    scheduler_.SetPlan(plan);
    scheduler_.SetHost(kHost, &host_, cursor_, now_);
    if (at_permit) {
      host_.permit = fail;
    } else {
      host_.reserve = fail;
    }
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_FALSE(scheduler_.IsHeldBack(kHost)) << name;
      AddPod(absl::StrCat(name, at_permit));
      ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    }
    EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
    EXPECT_THAT(actions_.binds, SizeIs(at_permit ? 6 : 3)) << "the policy is FailOpen";
  }
}

TEST_F(BreakerTest, FailuresAtPermitOpenTheBreaker) {
  AddNode("n1");
  host_.permit = [](const v1beta1::PermitRequest&) -> absl::StatusOr<v1beta1::PermitResponse> {
    v1beta1::PermitResponse wrong;
    wrong.add_waits()->set_plugin("Stranger");
    return wrong;
  };
  ExpectHeldBackAfterThreePods();
}

TEST_F(BreakerTest, FailuresAtUnreserveOpenTheBreaker) {
  AddNode("n1");
  host_.permit = [](const v1beta1::PermitRequest&) {
    v1beta1::PermitResponse rejects;
    rejects.mutable_rejection()->set_plugin("Gang");
    rejects.mutable_rejection()->set_code(v1beta1::CODE_UNSCHEDULABLE);
    rejects.mutable_rejection()->add_reasons("no");
    return rejects;
  };
  host_.unreserve =
      [](const v1beta1::UnreserveRequest&) -> absl::StatusOr<v1beta1::UnreserveResponse> {
    return absl::DeadlineExceededError("too slow");
  };
  ExpectHeldBackAfterThreePods();
}

TEST_F(BreakerTest, InvalidPushesOpenTheBreaker) {
  v1beta1::SyncResponse bad;
  bad.mutable_wait_decision()->set_attempt_id(1);
  v1beta1::SyncResponse good;
  good.mutable_gate_changed()->set_all_pods(true);
  for (const auto& push : {bad, bad, good, bad, bad}) host_.pushes.push_back(push);
  scheduler_.Tick(now_);
  EXPECT_FALSE(scheduler_.IsHeldBack(kHost));
  host_.pushes.push_back(bad);
  scheduler_.Tick(now_);
  EXPECT_TRUE(scheduler_.IsHeldBack(kHost));
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_breaker_test
