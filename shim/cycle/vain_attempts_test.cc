#include "shim/cycle/vain_attempts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace outboard::cycle {
namespace {

class VainAttemptsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto node = std::make_shared<kube::NodeObject>();
    node->resource_version = "1";
    node->node.set_name("n");
    node->node.set_uid("n");
    node->node.mutable_allocatable()->set_cpu_millis(4000);
    node->node.mutable_allocatable()->set_pods(10);
    cluster_.UpsertNode(node);
  }
  kube::PodPtr Pod(const std::string& uid, int64_t cpu_millis, int32_t priority = 0,
                   const std::string& node = "") {
    auto pod = std::make_shared<kube::PodObject>();
    pod->resource_version = "1";
    pod->pod.set_uid(uid);
    pod->pod.set_name(uid);
    pod->pod.set_namespace_("default");
    pod->pod.set_priority(priority);
    pod->pod.set_node_name(node);
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpu_millis);
    cluster_.UpsertPod(pod);
    return pod;
  }

  ClusterState cluster_;
  const GuardScope scope_;
  VainAttempts vain_{&cluster_};
};

TEST_F(VainAttemptsTest, APodThatFitsNowhereIsTriedInVainUntilRoomIsGivenBack) {
  Pod("runs", 3000, 0, "n");
  const kube::PodPtr large = Pod("large", 2000), alike = Pod("alike", 2000),
                     small = Pod("small", 1000);
  EXPECT_TRUE(vain_.IsVain(*large, scope_, false));
  EXPECT_TRUE(vain_.IsVain(*alike, scope_, false));
  EXPECT_FALSE(vain_.IsVain(*small, scope_, false));
  cluster_.RemovePod("runs");
  EXPECT_FALSE(vain_.IsVain(*large, scope_, false));
}

TEST_F(VainAttemptsTest, OnlyASecondAttemptOnTheSameTermsCanBeSpared) {
  Pod("runs", 3000, 0, "n");
  const kube::PodPtr large = Pod("large", 2000), other = Pod("other", 2000);
  EXPECT_FALSE(vain_.IsVainAgain(*large, scope_, false));
  EXPECT_TRUE(vain_.IsVainAgain(*large, scope_, false));
  EXPECT_FALSE(vain_.IsVainAgain(*other, scope_, false));
  cluster_.RemovePod("runs");
  EXPECT_FALSE(vain_.IsVainAgain(*large, scope_, false));
  Pod("again", 3000, 0, "n");
  EXPECT_FALSE(vain_.IsVainAgain(*large, scope_, false)) << "others may have rejected it meanwhile";
  EXPECT_TRUE(vain_.IsVainAgain(*large, scope_, false));
}

TEST_F(VainAttemptsTest, WhoMayMakeOthersLeaveIsTried) {
  Pod("runs", 3000, 5, "n");
  const kube::PodPtr same = Pod("same", 2000, 5), higher = Pod("higher", 2000, 6);
  EXPECT_TRUE(vain_.IsVain(*same, scope_, true));
  EXPECT_FALSE(vain_.IsVain(*higher, scope_, true));
  EXPECT_TRUE(vain_.IsVain(*higher, scope_, false));
  auto nominated = std::make_shared<kube::PodObject>(*higher);
  nominated->pod.set_nominated_node_name("n");
  EXPECT_FALSE(vain_.IsVain(*nominated, scope_, false)) << "those on its node are leaving";
}

TEST_F(VainAttemptsTest, WhatTheProfileDoesNotGuardIsNotLookedAt) {
  Pod("runs", 3000, 0, "n");
  const kube::PodPtr large = Pod("large", 2000);
  GuardScope none;
  none.resources = false;
  EXPECT_TRUE(vain_.IsVain(*large, scope_, false));
  EXPECT_FALSE(vain_.IsVain(*large, none, false));
}

}  // namespace
}  // namespace outboard::cycle
