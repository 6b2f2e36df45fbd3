#include "plugin_host/sdk/pod_group_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

PodGroupObject Read(GroupDialect dialect, const std::string& json) {
  v1beta1::GenericObject object;
  object.set_resource(std::string(GroupResource(dialect)));
  object.set_namespace_("ml");
  object.set_name("train");
  object.set_json(json);
  return *ReadPodGroup(object);
}
std::vector<std::string> MalformedIn(const PodGroupObject& group) {
  std::vector<std::string> places;
  for (const MalformedValue& value : group.malformed) places.push_back(value.from);
  return places;
}

TEST(ReadPodGroup, DisruptionModes) {
  const auto mode = [](const std::string& mode) {
    return Read(GroupDialect::kKubernetes,
                R"({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": )" +
                    mode + "}}");
  };
  for (const char* all : {R"("PodGroup")", R"({"all": {}})"}) {
    EXPECT_TRUE(mode(all).spec.disrupted_as_whole->value) << all;
    EXPECT_EQ(mode(all).spec.disrupted_as_whole->from, "spec.disruptionMode");
  }
  for (const char* single : {R"("Pod")", R"({"single": {}})"})
    EXPECT_FALSE(mode(single).spec.disrupted_as_whole->value) << single;
  for (const char* none : {R"("Both")", "{}", "7"}) {
    EXPECT_FALSE(mode(none).spec.disrupted_as_whole.has_value()) << none;
    EXPECT_THAT(MalformedIn(mode(none)), ElementsAre("spec.disruptionMode"));
  }
  EXPECT_THAT(MalformedIn(mode("null")), IsEmpty());
}

TEST(ReadPodGroup, SchedulerPlugins) {
  const PodGroupObject group = Read(GroupDialect::kSchedulerPlugins, R"({
    "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "ml", "creationTimestamp": "2026-01-31T22:00:00Z"},
    "spec": {"minMember": 4, "scheduleTimeoutSeconds": 300,
             "minResources": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": 32}},
    "status": {"phase": "Pending"}})");
  EXPECT_EQ(group.key.Text(), "scheduler-plugins ml/train");
  EXPECT_EQ(group.spec.min->value, 4);
  EXPECT_EQ(group.spec.min->from, "spec.minMember");
  EXPECT_EQ(group.spec.timeout->value, absl::Minutes(5));
  EXPECT_EQ(group.spec.min_resources->value.cpu_millis(), 8000);
  EXPECT_EQ(group.spec.min_resources->value.memory_bytes(), int64_t{32} << 30);
  EXPECT_EQ(group.spec.min_resources->value.scalar().at("nvidia.com/gpu"), 32);
  EXPECT_EQ(absl::ToUnixSeconds(group.spec.created->value), 1769896800);
  EXPECT_EQ(group.spec.fault, "");
  EXPECT_THAT(group.malformed, IsEmpty());
}

TEST(ReadPodGroup, Kubernetes) {
  PodGroupObject group = Read(GroupDialect::kKubernetes, R"({
    "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "train"},
    "spec": {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
             "schedulingPolicy": {"gang": {"minCount": 8}}, "priority": -5, "priorityClassName": "low",
             "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]}}})");
  EXPECT_EQ(group.spec.min->value, 8);
  EXPECT_EQ(group.spec.min->from, "spec.schedulingPolicy.gang.minCount");
  EXPECT_EQ(group.spec.topology.required->value, "topology.kubernetes.io/rack");
  EXPECT_EQ(group.spec.topology.required->from, "spec.schedulingConstraints.topology[0].key");
  EXPECT_EQ(group.spec.priority->value, -5);
  EXPECT_EQ(group.spec.priority_class->value, "low");
  EXPECT_FALSE(group.spec.timeout);
  group = Read(GroupDialect::kKubernetes, R"({"spec": {"schedulingPolicy": {"basic": {}}}})");
  EXPECT_FALSE(group.spec.min);
  EXPECT_EQ(group.spec.fault, "") << "its members are scheduled individually, as intended";
  group = Read(GroupDialect::kKubernetes, R"({"spec": {}})");
  EXPECT_EQ(group.spec.fault, "spec.schedulingPolicy is neither basic nor gang");
}

TEST(ReadPodGroup, Volcano) {
  PodGroupObject group = Read(GroupDialect::kVolcano, R"({
    "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"},
    "spec": {"minMember": 5, "minTaskMember": {"ps": 1, "worker": 4}, "queue": "default",
             "priorityClassName": "high", "minResources": {"cpu": "3", "memory": "2048Mi"},
             "networkTopology": {"mode": "hard", "highestTierAllowed": 2}},
    "status": {"phase": "Inqueue"}})");
  EXPECT_EQ(group.spec.min->value, 5);
  ASSERT_EQ(group.spec.sub_groups.size(), 2u);
  EXPECT_EQ(group.spec.sub_groups[1].name, "worker");
  EXPECT_EQ(group.spec.sub_groups[1].min->value, 4);
  EXPECT_EQ(group.spec.sub_groups[1].min->from, "spec.minTaskMember['worker']");
  EXPECT_EQ(group.spec.topology.required->value, "2");
  EXPECT_FALSE(group.spec.topology.preferred);
  EXPECT_EQ(group.spec.priority_class->value, "high");
  EXPECT_EQ(group.spec.fault, "");
  EXPECT_THAT(group.malformed, IsEmpty());
  group = Read(GroupDialect::kVolcano, R"({"spec": {
    "networkTopology": {"mode": "soft", "highestTierName": "rack"}}})");
  EXPECT_EQ(group.spec.topology.preferred->value, "rack");
  EXPECT_FALSE(group.spec.topology.required);
  EXPECT_FALSE(group.spec.min);
  EXPECT_EQ(group.spec.fault, "") << "a group of any size";
}

TEST(ReadPodGroup, Kai) {
  PodGroupObject group = Read(GroupDialect::kKai, R"({
    "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup", "metadata": {"name": "train"},
    "spec": {"minMember": 5, "queue": "team-a", "priorityClassName": "train",
             "topologyConstraint": {"topology": "network", "requiredTopologyLevel": "zone",
                                    "preferredTopologyLevel": "rack"},
             "subGroups": [{"name": "decode", "minMember": 4},
                           {"name": "prefill", "minMember": 1, "parent": "decode",
                            "topologyConstraint": {"requiredTopologyLevel": "rack"}}]}})");
  EXPECT_EQ(group.spec.min->value, 5);
  EXPECT_EQ(group.spec.topology.topology->value, "network");
  EXPECT_EQ(group.spec.topology.required->value, "zone");
  EXPECT_EQ(group.spec.topology.preferred->value, "rack");
  ASSERT_EQ(group.spec.sub_groups.size(), 2u);
  EXPECT_EQ(group.spec.sub_groups[1].parent, "decode");
  EXPECT_EQ(group.spec.sub_groups[1].topology.required->from,
            "spec.subGroups[1].topologyConstraint.requiredTopologyLevel");
  EXPECT_EQ(group.spec.fault,
            "spec.subGroups[1].topologyConstraint.requiredTopologyLevel is not served");
  EXPECT_THAT(group.malformed, IsEmpty());
  group = Read(GroupDialect::kKai, R"({"spec": {"minMember": 0}})");
  EXPECT_FALSE(group.spec.min);
  EXPECT_EQ(group.spec.fault, "");
}

// Subsets of parts and their topology are not supported, and reported as faults.
TEST(ReadPodGroup, WhatIsNotServedIsAFault) {
  const auto fault = [](GroupDialect dialect, const char* spec) {
    return Read(dialect, std::string(R"({"spec": )") + spec + "}").spec.fault;
  };
  constexpr GroupDialect kai = GroupDialect::kKai;
  EXPECT_EQ(fault(kai, R"({"minSubGroup": 2, "subGroups": [{"name": "a"}, {"name": "b"},
                           {"name": "c", "parent": "b"}]})"),
            "");
  EXPECT_EQ(fault(kai, R"({"minSubGroup": 1, "subGroups": [{"name": "a"}, {"name": "b"}]})"),
            "spec.minSubGroup: 1 of 2 subGroups is not served, only all of them");
  EXPECT_EQ(fault(kai, R"({"minSubGroup": 1})"),
            "spec.minSubGroup: 1 of 0 subGroups is not served, only all of them");
  EXPECT_EQ(fault(kai, R"({"minSubGroup": "all"})"),
            "spec.minSubGroup: \"\\\"all\\\"\" is not a number of members between 0 and 100000");
  EXPECT_EQ(fault(kai, R"({"subGroups": [{"name": "a", "minSubGroup": 1},
                           {"name": "b", "parent": "a"}, {"name": "c", "parent": "a"}]})"),
            "spec.subGroups[0].minSubGroup: 1 of 2 subGroups is not served, only all of them");
  EXPECT_EQ(fault(kai, R"({"subGroups": [{"name": "a", "topologyConstraint": {
                           "preferredTopologyLevel": "rack"}}]})"),
            "");
  constexpr GroupDialect volcano = GroupDialect::kVolcano;
  EXPECT_EQ(fault(volcano, R"({"subGroupPolicy": [{"name": "a", "subGroupSize": 2}]})"), "");
  EXPECT_EQ(fault(volcano, R"({"subGroupPolicy": [{"name": "a"}, {"minSubGroups": 1}]})"),
            "spec.subGroupPolicy[1].minSubGroups is not served");
  EXPECT_EQ(fault(volcano, R"({"subGroupPolicy": [{"networkTopology": {"mode": "soft"}}]})"), "");
  EXPECT_EQ(fault(volcano, R"({"subGroupPolicy": [{"networkTopology": {"mode": "hard"}}]})"),
            "spec.subGroupPolicy[0].networkTopology is not served");
}

TEST(ReadPodGroup, PartsAndTheirNumbers) {
  PodGroupObject group =
      Read(GroupDialect::kVolcano,
           R"({"spec": {"minMember": 2, "minTaskMember": {"ps": 0, "worker": 4}}})");
  ASSERT_EQ(PartsOf(group.spec).size(), 1u);
  EXPECT_EQ(PartsOf(group.spec)[0]->name, "worker");
  EXPECT_EQ(NumberOf(group.spec), 4);
  group = Read(GroupDialect::kKai, R"({"spec": {"minMember": 9, "subGroups": [
    {"name": "all", "minMember": 7}, {"name": "decode", "parent": "all", "minMember": 4},
    {"name": "prefill", "parent": "all", "minMember": 1}, {"name": "prefill", "minMember": 3}]}})");
  ASSERT_EQ(PartsOf(group.spec).size(), 2u);
  EXPECT_EQ(PartsOf(group.spec)[1]->min->value, 1);
  EXPECT_EQ(NumberOf(group.spec), 9);
  // Ignoring a part would place only a piece of the gang.
  group = Read(GroupDialect::kVolcano, R"({"spec": {"minTaskMember": {"worker": -1}}})");
  EXPECT_EQ(group.spec.fault,
            "spec.minTaskMember['worker']: \"-1\" is not a number of members between 0 and 100000");
  EXPECT_EQ(NumberOf(GroupSpec()), 0);
}

TEST(ReadPodGroup, WhatCannotBeReadIsAbsentAndASizeIsAFault) {
  for (const char* size : {"\"4\"", "0", "-1", "2.5", "100001", "1e3", "true", "[]", "{}",
                           "18446744073709551615", "\"many\""}) {
    const PodGroupObject group = Read(GroupDialect::kSchedulerPlugins,
                                      std::string(R"({"spec": {"minMember": )") + size + "}}");
    EXPECT_FALSE(group.spec.min) << size;
    EXPECT_THAT(group.spec.fault, ::testing::EndsWith("members between 1 and 100000")) << size;
    EXPECT_THAT(MalformedIn(group), ElementsAre("spec.minMember")) << size;
  }
  PodGroupObject group = Read(GroupDialect::kSchedulerPlugins, R"({
    "metadata": {"creationTimestamp": "today"},
    "spec": {"minMember": 2, "scheduleTimeoutSeconds": 0,
             "minResources": {"cpu": "few", "memory": "-1", "pods": "3"}}})");
  EXPECT_EQ(group.spec.min->value, 2);
  EXPECT_EQ(group.spec.fault, "");
  EXPECT_FALSE(group.spec.timeout);
  EXPECT_FALSE(group.spec.created);
  EXPECT_EQ(group.spec.min_resources->value.pods(), 3);
  EXPECT_THAT(MalformedIn(group),
              ElementsAre("spec.minResources['cpu']", "spec.minResources['memory']",
                          "spec.scheduleTimeoutSeconds", "metadata.creationTimestamp"));
  group = Read(GroupDialect::kVolcano, R"({"spec": {"minMember": 1, "minTaskMember": {"a": "x"},
    "networkTopology": {"mode": "firm", "highestTierAllowed": 1}}})");
  EXPECT_THAT(MalformedIn(group),
              ElementsAre("spec.minTaskMember['a']", "spec.networkTopology.mode"));
  EXPECT_FALSE(group.spec.topology.required);
}

TEST(ReadPodGroup, AbsurdObjectsAreReadToo) {
  for (const GroupDialect dialect : kGroupDialects) {
    if (GroupResource(dialect).empty()) continue;
    for (const char* text :
         {"", "[]", "{", R"({"spec": 3})", R"({"spec": {"minMember": null}})",
          R"({"spec": {"minMember": 2, "subGroups": {"a": 1}, "minTaskMember": [1],
              "networkTopology": "x", "topologyConstraint": [], "minResources": 7,
              "schedulingPolicy": {"gang": 3}, "schedulingConstraints": {"topology": [1, 2]}}})",
          R"({"spec": {"minMember": 2, "subGroups": [1, null, {"name": 3}],
              "schedulingPolicy": {"gang": {"minCount": "\ud83d\ude80"}}}})"}) {
      const PodGroupObject group = Read(dialect, text);
      if (dialect == GroupDialect::kSchedulerPlugins || dialect == GroupDialect::kKubernetes) {
        EXPECT_NE(group.spec.min.has_value(), !group.spec.fault.empty()) << text;
      }
      EXPECT_THAT(group.spec.sub_groups, IsEmpty()) << text;
    }
  }
  v1beta1::GenericObject other;
  other.set_resource("widgets.v1.example.com");
  EXPECT_FALSE(ReadPodGroup(other));
}

TEST(PodGroupResources, AreReadOnlyAndNotRequired) {
  std::vector<std::string> names;
  for (const v1beta1::DeclaredResource& resource : PodGroupResources()) {
    names.push_back(resource.resource());
    EXPECT_TRUE(resource.optional());
    EXPECT_EQ(resource.verbs_size(), 0);
  }
  EXPECT_THAT(names, ElementsAre("podgroups.v1alpha2.scheduling.k8s.io",
                                 "podgroups.v1alpha1.scheduling.x-k8s.io",
                                 "podgroups.v1beta1.scheduling.volcano.sh",
                                 "podgroups.v2alpha2.scheduling.run.ai"));
}

}  // namespace
}  // namespace outboard::sdk
