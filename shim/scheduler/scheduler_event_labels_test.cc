// The labels under which the scheduler counts events, as kube-scheduler does
// (scheduler_event_handling_duration_seconds).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/scheduler/scheduler.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SchedulerEventLabelsTest : public ::testing::Test, private Observer {
 protected:
  SchedulerEventLabelsTest()
      : scheduler_(SchedulerOptions(), queue::QueueOptions(), &effects_, this, nullptr, now_) {
    scheduler_.SetProfileNames({"outboard"});
  }
  std::vector<std::string> PutNode(const std::string& label, bool unschedulable = false) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("uid-n");
    node->node.set_name("n");
    node->node.set_unschedulable(unschedulable);
    (*node->node.mutable_labels())["l"] = label;
    node->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnNodeUpsert(node, now_);
    return std::exchange(labels_, {});
  }
  std::vector<std::string> PutPod(const std::string& label, const std::string& node) {
    return PutPod(label, node, "p" + node);
  }
  std::vector<std::string> PutPod(const std::string& label, const std::string& node,
                                  const std::string& name) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name("outboard");
    pod->pod.set_node_name(node);
    (*pod->pod.mutable_labels())["l"] = label;
    pod->resource_version = absl::StrCat(++resource_version_);
    scheduler_.events()->OnPodUpsert(pod, now_);
    return std::exchange(labels_, {});
  }
  std::vector<std::string> Labels() { return std::exchange(labels_, {}); }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  NoClusterActions effects_;
  Scheduler scheduler_;
  std::vector<std::string> bound_elsewhere_;  // uids

 private:
  void OnBoundElsewhere(const kube::PodObject& pod) override {
    bound_elsewhere_.push_back(pod.uid());
  }
  void OnEventHandled(absl::string_view event, absl::Duration) override {
    labels_.emplace_back(event);
  }
  std::vector<std::string> labels_;
  int resource_version_ = 0;
};

TEST_F(SchedulerEventLabelsTest, ANodesUpdateCountsAsWhatItChanged) {
  EXPECT_THAT(PutNode("a"), ElementsAre("NodeAdd"));
  EXPECT_THAT(PutNode("b"), ElementsAre("NodeUpdateNodeLabel"));
  EXPECT_THAT(PutNode("c", /*unschedulable=*/true), ElementsAre("NodeUpdateNodeLabel"));
  EXPECT_THAT(PutNode("d"), ElementsAre("NodeUpdateNodeTaint", "NodeUpdateNodeLabel"));
  EXPECT_THAT(PutNode("d"), IsEmpty());
  scheduler_.events()->OnNodeDelete("n", now_);
  EXPECT_THAT(Labels(), ElementsAre("NodeDelete"));
}

TEST_F(SchedulerEventLabelsTest, APodsUpdateCountsAsSuchAndAsWhatItChanged) {
  EXPECT_THAT(PutPod("a", ""), ElementsAre("UnschedulablePodAdd"));
  EXPECT_THAT(PutPod("b", ""),
              ElementsAre("UnschedulablePodUpdate", "UnschedulablePodUpdatePodLabel"));
  scheduler_.events()->OnPodDelete("uid-p", now_);
  EXPECT_THAT(Labels(), ElementsAre("UnschedulablePodDelete"));

  PutNode("a");
  EXPECT_THAT(PutPod("a", "n"), ElementsAre("AssignedPodAdd"));
  EXPECT_THAT(PutPod("b", "n"), ElementsAre("AssignedPodUpdate", "AssignedPodUpdatePodLabel"));
  scheduler_.events()->OnPodDelete("uid-pn", now_);
  EXPECT_THAT(Labels(), ElementsAre("AssignedPodDelete"));
}

TEST_F(SchedulerEventLabelsTest, APodInTheQueueThatAnotherSchedulerBinds) {
  PutNode("a");
  PutPod("a", "n", "assigned");
  EXPECT_THAT(bound_elsewhere_, IsEmpty()) << "it was never in the queue";
  PutPod("a", "", "pending");
  PutPod("a", "n", "pending");
  EXPECT_THAT(bound_elsewhere_, ElementsAre("uid-pending"));
  PutPod("b", "n", "pending");
  EXPECT_EQ(bound_elsewhere_.size(), 1u);
}

TEST_F(SchedulerEventLabelsTest, OtherObjectsCountByTheirKind) {
  auto object = std::make_shared<kube::ClusterObject>();
  object->object.mutable_persistent_volume_claim()->set_namespace_("ns");
  object->object.mutable_persistent_volume_claim()->set_name("claim");
  object->object_uid = "uid-claim";
  object->resource_version = "1";
  scheduler_.events()->OnObjectUpsert(object, now_);
  EXPECT_THAT(Labels(), ElementsAre("PersistentVolumeClaimAdd"));
  scheduler_.events()->OnObjectDelete(object, now_);
  EXPECT_THAT(Labels(), ElementsAre("PersistentVolumeClaimDelete"));
}

}  // namespace
}  // namespace outboard::scheduler
