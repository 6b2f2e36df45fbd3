// Pods that lose their node before the bind: the node is deleted, or other pods take the room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::scheduler::scheduler_lost_node_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kProfile[] = "outboard";
constexpr char kHost[] = "default";

class Failures final : public ClusterActions {
 public:
  void Write(const EffectOrder&, absl::Time) override {}
  void Evict(const EvictOrder&, absl::Time) override {}
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Bind(const BindOrder& order, absl::Time) override { bound.push_back(order.pod->uid()); }
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject& pod, const std::string&, const std::string& message,
                    absl::Time) override {
    failed.push_back(absl::StrCat(pod.uid(), ": ", message));
  }
  void PatchStatus(const kube::PodObject&, const std::optional<PodScheduledFalse>&,
                   const std::optional<std::string>&, absl::Time) override {}
  std::vector<std::string> bound, failed;
};

class LostNodeTest : public ::testing::Test {
 protected:
  LostNodeTest()
      : scheduler_(SchedulerOptions(), queue::QueueOptions(), &effects_, &observer_, nullptr,
                   now_) {
    scheduler_.SetProfileNames({kProfile});
    framework::ProfilePlan plan;
    plan.algorithm.name = kProfile;
    plan.algorithm.filter_plugins = {"Fit"};
    plan.host_names = {kHost};
    plan.guard.resources = false;
    plan.permit = {{kHost, {{"Gang", {"metadata.labels['gang']"}}}}};
    scheduler_.SetPlan(plan);
    host_.permit = [](const v1beta1::PermitRequest&) {
      v1beta1::PermitResponse response;
      v1beta1::PermitWait* wait = response.add_waits();
      wait->set_plugin("Gang");
      wait->set_timeout_micros(60'000'000);
      return response;
    };
    host_.unreserve = [this](const v1beta1::UnreserveRequest& request) {
      v1beta1::UnreserveResponse response;
      if (std::exchange(answered_, true)) return response;
      for (const auto& [uid, attempt] : waiting_) {
        if (uid == request.pod_uid()) continue;
        v1beta1::WaitDecision* decision = response.add_decisions();
        decision->set_attempt_id(attempt);
        decision->set_pod_uid(uid);
        decision->set_plugin("Gang");
        decision->set_message("one is lost");
      }
      return response;
    };
    const cache::ClusterState::Cursor cursor = scheduler_.cluster()->AddHost({});
    scheduler_.cluster()->TakeChanges(cursor, now_);
    scheduler_.SetHost(kHost, &host_, cursor, now_);
  }
  void PutNode(const std::string& name) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid(absl::StrCat("uid-", name));
    node->node.set_name(name);
    node->node.mutable_allocatable()->set_pods(10);
    scheduler_.events()->OnNodeUpsert(node, now_);
  }
  // Waits at Permit, on the only node.
  void Wait(const std::string& uid) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(uid);
    pod->pod.set_name(uid);
    pod->pod.set_scheduler_name(kProfile);
    (*pod->pod.mutable_labels())["gang"] = "g";
    pod->pod.add_containers();
    pod->resource_version = "1";
    scheduler_.events()->OnPodUpsert(pod, now_);
    ASSERT_TRUE(scheduler_.ScheduleOne(now_));
    waiting_.emplace_back(uid, host_.cycles.back().cycle().header().attempt_id());
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  Failures effects_;
  Observer observer_;
  framework::ScriptedHost host_;
  std::vector<std::pair<std::string, uint64_t>> waiting_;
  bool answered_ = false;
  Scheduler scheduler_;
};

TEST_F(LostNodeTest, WaitsOnItEndAtOnceAndThoseOfTheOthersWithThem) {
  PutNode("n1");
  Wait("a");
  Wait("b");
  EXPECT_EQ(scheduler_.waiting_pods(), 2u);
  scheduler_.events()->OnNodeDelete("n1", now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 0u);
  EXPECT_EQ(scheduler_.attempts_in_flight(), 0u);
  EXPECT_THAT(effects_.failed, ElementsAre("b: 0/1 nodes are available: 1 one is lost.",
                                           "a: waiting on permit for pod: node n1 is gone"));
  EXPECT_THAT(effects_.bound, IsEmpty());
  EXPECT_EQ(host_.unreserved.size(), 2u);
}

TEST_F(LostNodeTest, WaitsElsewhereGoOn) {
  PutNode("n1");
  Wait("a");
  scheduler_.events()->OnNodeDelete("n2", now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  PutNode("n3");
  scheduler_.events()->OnNodeDelete("n3", now_);
  EXPECT_EQ(scheduler_.waiting_pods(), 1u);
  EXPECT_THAT(effects_.failed, IsEmpty());
}

// Between decision and bind, pods of other schedulers may come to the node.
TEST_F(LostNodeTest, OthersPodsTakeTheRoomOfAPodThatIsBeingBound) {
  framework::ProfilePlan plan;
  plan.algorithm.name = kProfile;
  plan.algorithm.filter_plugins = {"Fit"};
  plan.host_names = {kHost};
  scheduler_.SetPlan(plan);  // With the guard, and no plugin at Permit.
  PutNode("n1");
  Wait("mine");
  ASSERT_THAT(effects_.bound, ElementsAre("mine"));
  const auto room = [this] { return scheduler_.StillFits("mine", "n1", kProfile); };
  for (int i = 1; i <= 10; ++i) {
    EXPECT_TRUE(room().ok()) << i;
    auto theirs = std::make_shared<kube::PodObject>();
    theirs->pod.set_uid(absl::StrCat("theirs-", i));
    theirs->pod.set_name(theirs->pod.uid());
    theirs->pod.set_node_name("n1");
    theirs->pod.add_containers();
    theirs->resource_version = "1";
    scheduler_.events()->OnPodUpsert(theirs, now_);
  }
  EXPECT_THAT(std::string(room().message()), HasSubstr("node n1 can no longer take the pod: "));
  scheduler_.events()->OnPodDelete("theirs-3", now_);
  EXPECT_TRUE(room().ok());
  scheduler_.events()->OnNodeDelete("n1", now_);
  EXPECT_THAT(std::string(room().message()), HasSubstr("the node is gone"));
  // The API server rejects these itself.
  EXPECT_TRUE(scheduler_.StillFits("mine", "n1", "no-such-profile").ok());
}

}  // namespace
}  // namespace outboard::scheduler::scheduler_lost_node_test
