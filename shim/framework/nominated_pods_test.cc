#include "shim/framework/nominated_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class NominatedPodsTest : public ::testing::Test {
 protected:
  NominatedPodsTest() {
    for (const char* name : {"n0", "n1", "n2"}) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_name(name);
      node->node.set_uid(name);
      cluster_.UpsertNode(node);
    }
  }
  kube::PodPtr AddPod(const std::string& name, int32_t priority) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_priority(priority);
    pod->resource_version = "1";
    cluster_.UpsertPod(pod);
    return pod;
  }
  void Nominate(const std::string& name, int32_t priority, const std::string& node) {
    const kube::PodPtr pod = AddPod(name, priority);
    ASSERT_TRUE(cluster_.Nominate(pod->uid(), cluster_.SlotOf(node)).ok());
  }
  // As "SLOT UID…".
  template <typename Nominated>
  static std::vector<std::string> Text(const Nominated& nominated) {
    std::vector<std::string> all;
    for (const v1beta1::NominatedPods& node : nominated)
      all.push_back(absl::StrCat(node.slot(), " ", absl::StrJoin(node.pod_uids(), " ")));
    return all;
  }

  cache::ClusterState cluster_;
};

TEST_F(NominatedPodsTest, OthersOfAtLeastThePodsPriorityCount) {
  const kube::PodPtr pod = AddPod("p", 5);
  ASSERT_TRUE(cluster_.Nominate(pod->uid(), cluster_.SlotOf("n1")).ok());
  EXPECT_THAT(NominatedBeside(cluster_, *pod), IsEmpty()) << "only itself";
  Nominate("equal", 5, "n2");
  Nominate("above", 6, "n2");
  Nominate("below", 4, "n1");
  Nominate("first", 7, "n0");
  EXPECT_THAT(Text(NominatedBeside(cluster_, *pod)),
              ElementsAre("0 uid-first", "2 uid-above uid-equal"));
  ASSERT_TRUE(cluster_.Assume("uid-first", cluster_.SlotOf("n0")).ok());
  cluster_.RemoveNode("n2");
  EXPECT_THAT(NominatedBeside(cluster_, *pod), IsEmpty()) << "placed, and without a node";
}

TEST_F(NominatedPodsTest, AQuestionNamesOnlyItsNodes) {
  const kube::PodPtr pod = AddPod("p", 5);
  Nominate("a", 5, "n0");
  Nominate("b", 5, "n2");
  const std::vector<v1beta1::NominatedPods> all = NominatedBeside(cluster_, *pod);
  v1beta1::NodeSearch search;
  AddNominated(all, &search);
  EXPECT_THAT(Text(search.nominated()), ElementsAre("0 uid-a", "2 uid-b")) << "every node";
  search.Clear();
  search.mutable_nodes()->add_slots(2);
  search.mutable_nodes()->add_slots(1);
  AddNominated(all, &search);
  EXPECT_THAT(Text(search.nominated()), ElementsAre("2 uid-b"));
  v1beta1::NodeSimulation simulation;
  for (const uint32_t slot : {0, 0, 1}) simulation.add_nodes()->set_slot(slot);
  AddNominated(all, &simulation);
  EXPECT_THAT(Text(simulation.nominated()), ElementsAre("0 uid-a")) << "once";
}

}  // namespace
}  // namespace outboard::framework
