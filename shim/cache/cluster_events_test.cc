#include "shim/cache/cluster_events.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::cache {
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
  EXPECT_THAT(NodeEvents("", "unschedulable: true"), IsEmpty()) << "a cordon helps no pod";
  EXPECT_THAT(NodeEvents("allocatable { cpu_millis: 1 }", "allocatable { cpu_millis: 2 }"),
              ElementsAre("NodeUpdateNodeAllocatable"));
  EXPECT_THAT(NodeEvents("labels { key: 'a' value: '1' }", "labels { key: 'a' value: '2' }"),
              ElementsAre("NodeUpdateNodeLabel"));
  EXPECT_THAT(NodeEvents("taints { key: 'a' effect: TAINT_EFFECT_NO_SCHEDULE }",
                         "taints { key: 'a' effect: TAINT_EFFECT_NO_EXECUTE }"),
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
  EXPECT_THAT(PodEvents("", "labels { key: 'a' }"), ElementsAre("UnschedulablePodUpdatePodLabel"));
  EXPECT_THAT(PodEvents("node_name: 'n'", "node_name: 'n' labels { key: 'a' }"),
              ElementsAre("AssignedPodUpdatePodLabel"));
  EXPECT_THAT(PodEvents("containers { requests { cpu_millis: 2 } }",
                        "containers { requests { cpu_millis: 1 } }"),
              ElementsAre("UnschedulablePodUpdatePodScaleDown"));
  EXPECT_THAT(
      PodEvents("containers { requests { scalar { key: 'g' value: 2 } } }", "containers { }"),
      ElementsAre("UnschedulablePodUpdatePodScaleDown"));
  EXPECT_THAT(PodEvents("containers { requests { cpu_millis: 1 } }",
                        "containers { requests { cpu_millis: 2 } }"),
              ElementsAre("UnschedulablePodUpdate"));
  EXPECT_THAT(PodEvents("scheduling_gates: 'a'", ""),
              ElementsAre("UnschedulablePodUpdatePodSchedulingGatesEliminated"));
  EXPECT_THAT(PodEvents("scheduling_gates: 'a' scheduling_gates: 'b'", "scheduling_gates: 'a'"),
              ElementsAre("UnschedulablePodUpdate"));
  EXPECT_THAT(PodEvents("", "tolerations { key: 'a' }"),
              ElementsAre("UnschedulablePodUpdatePodToleration"));
  EXPECT_THAT(PodEvents("", "annotations { key: 'a' value: '1' }"),
              ElementsAre("UnschedulablePodUpdate"));
  EXPECT_THAT(PodEvents("",
                        "nominated_node_name: 'n' generation: 2 preempted_by_scheduler: true "
                        "pod_actual_requests { cpu_millis: 1 }"),
              IsEmpty())
      << "the status alone";
  EXPECT_THAT(PodEvents("",
                        "preempted_by_scheduler: true pod_actual_requests { cpu_millis: 1 } "
                        "pod_allocated_requests { cpu_millis: 1 }"),
              IsEmpty())
      << "the status alone";
}

TEST(ObjectEventTest, OnlyKindsThatKubeSchedulerListensTo) {
  const auto label = [](const std::string& text, queue::Action action) -> std::string {
    kube::ClusterObject object;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &object.object));
    const auto event = ObjectEvent(object, action);
    return event.has_value() ? absl::StrCat(event->resource, ": ", event->Label()) : "none";
  };
  EXPECT_EQ(label("persistent_volume {}", queue::kAdd), "PersistentVolume: PersistentVolumeAdd");
  EXPECT_EQ(label("persistent_volume_claim {}", queue::kUpdate),
            "PersistentVolumeClaim: PersistentVolumeClaimUpdate");
  EXPECT_EQ(label("storage_class {}", queue::kDelete),
            "StorageClass: storage.k8s.io/StorageClassDelete");
  EXPECT_EQ(label("csi_node {}", queue::kUpdate), "CSINode: storage.k8s.io/CSINodeUpdate");
  EXPECT_EQ(label("csi_driver {}", queue::kAdd), "CSIDriver: storage.k8s.io/CSIDriverAdd");
  EXPECT_EQ(label("csi_storage_capacity {}", queue::kAdd),
            "CSIStorageCapacity: storage.k8s.io/CSIStorageCapacityAdd");
  EXPECT_EQ(label("volume_attachment {}", queue::kDelete),
            "VolumeAttachment: storage.k8s.io/VolumeAttachmentDelete");
  EXPECT_EQ(label("device_class {}", queue::kAdd), "DeviceClass: resource.k8s.io/DeviceClassAdd");
  for (const char* silent : {"service {}", "pod_controller {}", "pod_disruption_budget {}", ""}) {
    EXPECT_EQ(label(silent, queue::kAdd), "none") << silent;
  }
}

}  // namespace
}  // namespace outboard::cache
