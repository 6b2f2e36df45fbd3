#include "plugins/gpu_model_match/numa_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace outboard::gpu_model_match::numa_objects_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

NumaObject Read(const std::string& json) {
  v1beta1::GenericObject object;
  object.set_json(json);
  return ReadNumaObject(object);
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
