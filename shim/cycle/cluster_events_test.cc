#include "shim/cycle/cluster_events.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace outboard::cycle {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> NodeEvents(const std::string& before, const std::string& after,
                                    const std::string& conditions_before = "Ready=True",
                                    const std::string& conditions_after = "Ready=True") {
  kube::NodeObject a;
  kube::NodeObject b;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(before, &a.node));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(after, &b.node));
  a.conditions = conditions_before;
  b.conditions = conditions_after;
  std::vector<std::string> labels;
  for (const auto& event : NodeUpdateEvents(a, b)) labels.push_back(event.Label());
  return labels;
}

std::vector<std::string> PodEvents(const std::string& before, const std::string& after) {
  kube::PodObject a;
  kube::PodObject b;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(before, &a.pod));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(after, &b.pod));
  std::vector<std::string> labels;
  for (const auto& event : PodUpdateEvents(a, b)) labels.push_back(event.Label());
  return labels;
}

TEST(NodeUpdateEventsTest, EachKindOfChange) {
  EXPECT_THAT(NodeEvents("", ""), IsEmpty());
  EXPECT_THAT(NodeEvents("unschedulable: true", ""), ElementsAre("NodeUpdateNodeTaint"));
  EXPECT_THAT(NodeEvents("", "unschedulable: true"), IsEmpty()) << "a cordon helps nobody";
  EXPECT_THAT(NodeEvents("allocatable { cpu_millis: 1 }", "allocatable { cpu_millis: 2 }"),
              ElementsAre("NodeUpdateNodeAllocatable"));
  EXPECT_THAT(NodeEvents("labels { key: 'a' value: '1' }", "labels { key: 'a' value: '2' }"),
              ElementsAre("NodeUpdateNodeLabel"));
  EXPECT_THAT(NodeEvents("taints { key: 'a' effect: NO_SCHEDULE }",
                         "taints { key: 'a' effect: NO_EXECUTE }"),
              ElementsAre("NodeUpdateNodeTaint"));
  EXPECT_THAT(NodeEvents("", "annotations { key: 'a' value: '1' }"),
              ElementsAre("NodeUpdateNodeAnnotation"));
  EXPECT_THAT(NodeEvents("", "", "Ready=False", "Ready=True"),
              ElementsAre("NodeUpdateNodeCondition"));
  EXPECT_THAT(NodeEvents("", "", "Ready=True,Disk=False", "Disk=False,Ready=True"), IsEmpty());
  EXPECT_THAT(NodeEvents("images { names: 'x' }", ""), IsEmpty());
  EXPECT_THAT(NodeEvents("declared_features: 'a'", "declared_features: 'b'"),
              ElementsAre("NodeUpdateNodeDeclaredFeature"));
  EXPECT_THAT(
      NodeEvents("unschedulable: true", "allocatable { pods: 1 } labels { key: 'a' }"),
      ElementsAre("NodeUpdateNodeTaint", "NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"));
}

TEST(PodUpdateEventsTest, EachKindOfChange) {
  EXPECT_THAT(PodEvents("", ""), IsEmpty());
  EXPECT_THAT(PodEvents("", "labels { key: 'a' }"), ElementsAre("UnscheduledPodUpdatePodLabel"));
  EXPECT_THAT(PodEvents("node_name: 'n'", "node_name: 'n' labels { key: 'a' }"),
              ElementsAre("AssignedPodUpdatePodLabel"));
  EXPECT_THAT(PodEvents("containers { requests { cpu_millis: 2 } }",
                        "containers { requests { cpu_millis: 1 } }"),
              ElementsAre("UnscheduledPodUpdatePodScaleDown"));
  EXPECT_THAT(
      PodEvents("containers { requests { extended { key: 'g' value: 2 } } }", "containers { }"),
      ElementsAre("UnscheduledPodUpdatePodScaleDown"));
  EXPECT_THAT(PodEvents("containers { requests { cpu_millis: 1 } }",
                        "containers { requests { cpu_millis: 2 } }"),
              ElementsAre("UnscheduledPodUpdate"));
  EXPECT_THAT(PodEvents("scheduling_gates: 'a'", ""),
              ElementsAre("UnscheduledPodUpdatePodSchedulingGatesEliminated"));
  EXPECT_THAT(PodEvents("scheduling_gates: 'a' scheduling_gates: 'b'", "scheduling_gates: 'a'"),
              ElementsAre("UnscheduledPodUpdate"));
  EXPECT_THAT(PodEvents("", "tolerations { key: 'a' }"),
              ElementsAre("UnscheduledPodUpdatePodToleration"));
  EXPECT_THAT(PodEvents("", "annotations { key: 'a' value: '1' }"),
              ElementsAre("UnscheduledPodUpdate"));
  EXPECT_THAT(PodEvents("",
                        "nominated_node_name: 'n' generation: 2 preempted_by_scheduler: true "
                        "pod_actual_requests { cpu_millis: 1 }"),
              IsEmpty())
      << "the status alone";
}

}  // namespace
}  // namespace outboard::cycle
