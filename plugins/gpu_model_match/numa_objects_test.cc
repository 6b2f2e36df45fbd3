#include "plugins/gpu_model_match/numa_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::gpu_model_match::numa_objects_test {
namespace {

using sdk::testing::PodBuilder;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

NumaObject Read(const std::string& json) {
  v1beta1::GenericObject object;
  object.set_json(json);
  return ReadNumaObject(object);
}

// What Node Feature Discovery's topology updater wrote about a machine of
// integration/publishers/node_feature_discovery.
NumaObject ReadRecorded(const std::string& machine) {
  std::ifstream file("integration/publishers/recorded/node_topologies.json");
  const auto list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (list.is_object()) {
    for (const auto& item : list.at("items")) {
      if (item.at("metadata").at("name") == machine) return Read(item.dump());
    }
  }
  ADD_FAILURE() << "no object of " << machine;
  return {};
}

NumaMisfit MisfitOf(const NumaObject& object, const std::string& cpus, const std::string& gpus) {
  v1beta1::Pod pod =
      PodBuilder("p").Requests({{"cpu", cpus}, {"memory", "1Gi"}, {"nvidia.com/gpu", gpus}});
  *pod.mutable_containers(0)->mutable_limits() = pod.containers(0).requests();
  return FindMisfit(NumaRequestsOf(pod), object.topology, object.available);
}

TEST(NumaObjectsTest, ReadsWhatTheTopologyUpdaterWrites) {
  constexpr int64_t kGi = int64_t{1} << 30;
  const NumaObject object = ReadRecorded("two-sockets");
  EXPECT_FALSE(object.malformed.has_value());
  const NumaTopology& topology = object.topology;
  EXPECT_EQ(topology.policy, NumaPolicy::kSingleNumaNode);
  EXPECT_EQ(topology.scope, NumaScope::kPod);
  EXPECT_THAT(topology.resources, ElementsAre("cpu", "hugepages-1Gi", "memory", "nvidia.com/gpu"));
  ASSERT_EQ(topology.zones.size(), 2u);
  EXPECT_THAT(topology.zones[0].distances, ElementsAre(Pair(0, 10), Pair(1, 21)));
  EXPECT_THAT(topology.amounts,
              ElementsAre(NumaAmounts{true, 64000, 62000}, NumaAmounts{true, 16 * kGi, 16 * kGi},
                          NumaAmounts{true, 512 * kGi, 495 * kGi}, NumaAmounts{true, 4, 4},
                          NumaAmounts{true, 64000, 64000}, NumaAmounts{},
                          NumaAmounts{true, 512 * kGi, 512 * kGi}, NumaAmounts{true, 4, 4}));
  // train-0 has CPUs, memory and GPUs of the first zone, notebook a GPU of the second.
  EXPECT_THAT(object.available, ElementsAre(58000, 16 * kGi, 431 * kGi, 2, 64000, 0, 512 * kGi, 3));
  EXPECT_EQ(MisfitOf(object, "60", "3"), NumaMisfit::kNone);
  EXPECT_EQ(MisfitOf(object, "60", "4"), NumaMisfit::kPod);
}

TEST(NumaObjectsTest, ReadsOtherPoliciesThatTheTopologyUpdaterWrites) {
  const NumaObject four = ReadRecorded("four-zones");
  EXPECT_EQ(four.topology.policy, NumaPolicy::kRestricted);
  EXPECT_EQ(four.topology.scope, NumaScope::kContainer);
  EXPECT_EQ(four.topology.zones.size(), 4u);
  EXPECT_EQ(MisfitOf(four, "8", "2"), NumaMisfit::kNone);
  EXPECT_EQ(MisfitOf(four, "8", "3"), NumaMisfit::kContainer) << "GPUs want two zones, CPUs one";
  const NumaObject one = ReadRecorded("one-zone");
  EXPECT_EQ(one.topology.policy, NumaPolicy::kNone);
  EXPECT_EQ(one.topology.zones.size(), 1u);
}

// It lists the CPUs of the zone without GPUs as not allocatable. The kubelet aligns GPUs only.
TEST(NumaObjectsTest, CpusThatTheKubeletDoesNotManageAreNotAligned) {
  const NumaObject object = ReadRecorded("no-cpu-manager");
  EXPECT_EQ(object.topology.policy, NumaPolicy::kSingleNumaNode);
  EXPECT_THAT(object.topology.resources, ElementsAre("nvidia.com/gpu"));
  EXPECT_EQ(object.topology.zones.size(), 2u);
  EXPECT_THAT(object.available, ElementsAre(4, 0));
  EXPECT_EQ(MisfitOf(object, "4", "2"), NumaMisfit::kNone);
  EXPECT_EQ(MisfitOf(object, "4", "5"), NumaMisfit::kContainer);
}

TEST(NumaObjectsTest, CpusOfASingleManagedZoneCount) {
  const NumaObject object = Read(R"({"zones": [
    {"name": "node-0", "type": "Node", "resources": [{"name": "cpu", "capacity": 8, "allocatable": 0}]},
    {"name": "node-1", "type": "Node", "resources": [{"name": "cpu", "capacity": 8, "allocatable": 6}]}]})");
  EXPECT_THAT(object.topology.amounts,
              ElementsAre(NumaAmounts{true, 8000, 0}, NumaAmounts{true, 8000, 6000}));
}

// As NFD's topology-updater writes it.
TEST(NumaObjectsTest, ReadsPolicyZonesAndDistances) {
  const NumaObject object = Read(R"({
    "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"},
                   {"name": "topologyManagerScope", "value": "pod"},
                   {"name": "topologyManagerMaxNUMANodes", "value": "16"},
                   {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v001fb"}],
    "zones": [
      {"name": "node-1", "type": "Node", "costs": [{"name": "node-0", "value": 21}, {"name": "node-1", "value": 10}],
       "resources": [{"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "4", "available": "1"},
                     {"name": "cpu", "capacity": "32", "allocatable": "30", "available": "1500m"}]},
      {"name": "node-0", "type": "Node",
       "resources": [{"name": "cpu", "capacity": 32, "allocatable": "31", "available": "30"}]},
      {"name": "socket-0", "type": "Socket", "resources": [{"name": "cpu", "available": "64"}]}]})");
  const NumaTopology& topology = object.topology;
  EXPECT_EQ(topology.policy, NumaPolicy::kSingleNumaNode);
  EXPECT_EQ(topology.scope, NumaScope::kPod);
  EXPECT_EQ(topology.max_numa_nodes, 16);
  EXPECT_THAT(topology.resources, ElementsAre("cpu", "nvidia.com/gpu"));
  ASSERT_EQ(topology.zones.size(), 2u);
  EXPECT_EQ(topology.zones[0].id, 0);
  EXPECT_EQ(topology.zones[1].id, 1);
  EXPECT_THAT(topology.zones[1].distances, ElementsAre(Pair(0, 21), Pair(1, 10)));
  EXPECT_THAT(topology.amounts,
              ElementsAre(NumaAmounts{true, 32000, 31000}, NumaAmounts{},
                          NumaAmounts{true, 32000, 30000}, NumaAmounts{true, 4, 4}));
  EXPECT_THAT(object.available, ElementsAre(30000, 0, 1500, 1));
  EXPECT_FALSE(object.malformed.has_value());
}

TEST(NumaObjectsTest, OlderPoliciesHoldWhereAttributesAreAbsent) {
  EXPECT_EQ(Read(R"({"topologyPolicies": ["RestrictedPodLevel", "BestEffortPodLevel"]})").topology,
            (NumaTopology{.policy = NumaPolicy::kRestricted, .scope = NumaScope::kPod}));
  EXPECT_EQ(Read(R"({"topologyPolicies": ["SingleNUMANodePodLevel"],
                     "attributes": [{"name": "topologyManagerScope", "value": "container"}]})")
                .topology,
            (NumaTopology{.policy = NumaPolicy::kSingleNumaNode}));
  EXPECT_EQ(Read(R"({"topologyPolicies": ["Restricted"]})").topology, NumaTopology())
      << "it has no scope; NodeResourceTopologyMatch ignores it too";
}

TEST(NumaObjectsTest, MalformedValuesCountAsAbsent) {
  struct Case {
    std::string json;
    std::string field;
  };
  for (const Case& c : {
           Case{R"({"attributes": [{"name": "topologyManagerPolicy", "value": "Restricted"}]})",
                "attributes[0].value"},
           Case{R"({"attributes": [{"name": "topologyManagerScope", "value": ""}]})",
                "attributes[0].value"},
           Case{R"({"attributes": [{"name": "topologyManagerMaxNUMANodes", "value": "1"}]})",
                "attributes[0].value"},
           Case{R"({"zones": [{"type": "Node", "name": "node-64", "resources": []}]})",
                "zones[0].name"},
           Case{R"({"zones": [{"type": "Node", "name": "Node-1", "resources": []}]})",
                "zones[0].name"},
           Case{R"({"zones": [{"type": "Node", "name": "node-0", "resources": [{"name": "cpu",
                    "capacity": "2", "available": "many"}]}]})",
                "zones[0].resources[0].available"},
       }) {
    const NumaObject object = Read(c.json);
    ASSERT_TRUE(object.malformed.has_value()) << c.json;
    EXPECT_EQ(object.malformed->field, c.field);
    EXPECT_EQ(object.topology.policy, NumaPolicy::kNone);
    EXPECT_EQ(object.topology.scope, NumaScope::kContainer);
    EXPECT_EQ(object.topology.max_numa_nodes, 8);
  }
}

TEST(NumaObjectsTest, AnythingCanBeRead) {
  for (const char* json :
       {"", "[]", "null", R"({"zones": 3, "attributes": {}})", R"({"zones": [null, 1, []]})",
        R"({"zones": [{"type": "Node", "name": "node-0", "resources": [7, {"name": 7}]}]})",
        R"({"zones": [{"type": "Node", "name": "node-0", "costs": [{"name": "node-0"}]}]})"}) {
    const NumaObject object = Read(json);
    EXPECT_THAT(object.topology.zones, IsEmpty()) << json;
    EXPECT_THAT(object.available, IsEmpty()) << json;
  }
}

TEST(NumaObjectsTest, AbsurdAmountsAreBounded) {
  const NumaObject object = Read(R"({"zones": [{"type": "Node", "name": "node-0", "resources": [
    {"name": "cpu", "capacity": "-5", "allocatable": "8E", "available": "-1"}]}]})");
  EXPECT_THAT(object.available, ElementsAre(0));
  EXPECT_THAT(object.topology.amounts, ElementsAre(NumaAmounts{true, 0, 0}))
      << "8E CPUs are out of range";
  EXPECT_EQ(object.malformed->field, "zones[0].resources[0].allocatable");
}

}  // namespace
}  // namespace outboard::gpu_model_match::numa_objects_test
