#include "plugin_host/node_facts_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace outboard::plugin_host {
namespace {

TEST(NodeFactsOutputTest, EveryFactHasAValueOrPublishers) {
  v1beta1::SyncRequest changes;
  v1beta1::Node& node = *changes.add_changes()->mutable_node_upsert()->mutable_node();
  node.set_name("n");
  (*node.mutable_labels())["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3";
  (*node.mutable_labels())["nvidia.com/gpu.count"] = "8";
  (*node.mutable_labels())["gpu-memory-gb"] = "lots";
  const auto whole = nlohmann::json::parse(NodeFactsJson(changes));
  ASSERT_EQ(whole["nodes"].size(), 1u);
  const auto& read = whole["nodes"][0];
  EXPECT_EQ(read["name"], "n");
  EXPECT_EQ(read["malformed"].size(), 1u);
  EXPECT_EQ(read["malformed"][0]["key"], "gpu-memory-gb");
  std::map<std::string, nlohmann::json> facts;
  for (const auto& fact : read["facts"]) {
    facts[fact["fact"].get<std::string>()] = fact;
    EXPECT_EQ(fact["value"].is_null(), fact.contains("publishers")) << fact;
  }
  EXPECT_EQ(facts.at("model")["value"], "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(facts.at("model")["origin"], "label nvidia.com/gpu.product");
  EXPECT_EQ(facts.at("NVLink in the node")["value"], "nvswitch");
  EXPECT_EQ(facts.at("NVLink islands")["value"], "8 GPUs");
  EXPECT_TRUE(facts.at("memory of a GPU")["value"].is_null());
  EXPECT_TRUE(facts.at("capacity type")["value"].is_null());
}

TEST(NodeFactsOutputTest, ShowsNumaZones) {
  const auto zones_of = [](const char* name, const char* topology) {
    v1beta1::SyncRequest changes;
    changes.add_changes()->mutable_node_upsert()->mutable_node()->set_name("n");
    v1beta1::GenericObject& object =
        *changes.add_changes()->mutable_object_upsert()->mutable_generic_object();
    object.set_resource("noderesourcetopologies.v1alpha2.topology.node.k8s.io");
    object.set_name(name);
    object.set_json(topology);
    const auto whole = nlohmann::json::parse(NodeFactsJson(changes));
    return whole["nodes"][0]["facts"].back();
  };
  const char* const kTwoZones = R"({"zones": [
    {"name": "node-0", "resources": [{"name": "cpu", "capacity": "32", "available": 30},
                                     {"name": "nvidia.com/gpu", "capacity": "4"}]},
    {"name": "node-1"}, {"resources": 3}]})";
  const auto zones = zones_of("n", kTwoZones);
  EXPECT_EQ(zones["fact"], "NUMA zones");
  EXPECT_EQ(zones["value"], "node-0: cpu 30 of 32, nvidia.com/gpu ? of 4; node-1; ?");
  EXPECT_EQ(zones["origin"], "NodeResourceTopology");
  EXPECT_TRUE(zones_of("other", kTwoZones)["value"].is_null());
  for (const char* malformed : {"", "[]", "{}", R"({"zones": {}})"})
    EXPECT_TRUE(zones_of("n", malformed)["value"].is_null()) << malformed;
}

// What Node Feature Discovery's topology updater writes: integration/publishers.
TEST(NodeFactsOutputTest, ShowsRecordedZones) {
  std::ifstream file("integration/publishers/recorded/node_topologies.json");
  const auto list = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(list.is_object());
  v1beta1::SyncRequest changes;
  for (const auto& item : list.at("items")) {
    const std::string name = item.at("metadata").at("name");
    changes.add_changes()->mutable_node_upsert()->mutable_node()->set_name(name);
    v1beta1::GenericObject& object =
        *changes.add_changes()->mutable_object_upsert()->mutable_generic_object();
    object.set_resource("noderesourcetopologies.v1alpha2.topology.node.k8s.io");
    object.set_name(name);
    object.set_json(item.dump());
  }
  std::map<std::string, std::string> zones;
  const auto whole = nlohmann::json::parse(NodeFactsJson(changes));
  for (const auto& node : whole["nodes"])
    zones[node["name"].get<std::string>()] = node["facts"].back()["value"].get<std::string>();
  EXPECT_THAT(zones["two-sockets"], ::testing::StartsWith("node-0: cpu 58 of 64, "));
  EXPECT_THAT(zones["two-sockets"], ::testing::HasSubstr("nvidia.com/gpu 2 of 4; node-1: cpu 64"));
  EXPECT_EQ(zones["no-cpu-manager"], "node-0: nvidia.com/gpu 4 of 4; node-1: cpu 0 of 64");
}

TEST(NodeFactsOutputTest, AFileThatIsNoneIsAnError) {
  EXPECT_FALSE(NodeFactsOfFile("/nonexistent").ok());
}

TEST(NodeFactsOutputTest, APriceListGivesPrices) {
  v1beta1::SyncRequest changes;
  v1beta1::Node& node = *changes.add_changes()->mutable_node_upsert()->mutable_node();
  node.set_name("n");
  (*node.mutable_labels())["node.kubernetes.io/instance-type"] = "p5.48xlarge";
  const std::string nodes = ::testing::TempDir() + "/node_facts_output_nodes";
  const std::string list = ::testing::TempDir() + "/node_facts_output_prices.csv";
  std::ofstream(nodes, std::ios::binary) << changes.SerializeAsString();
  std::ofstream(list) << "instanceType,price\np5.48xlarge,98.32\n";
  const absl::StatusOr<std::string> facts = NodeFactsOfFile(nodes, list);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(*facts, ::testing::HasSubstr("\"origin\":\"price list " + list + ":2\""));
  EXPECT_THAT(*facts, ::testing::HasSubstr("\"value\":\"98.32\""));

  std::ofstream(list) << "instanceType,price\np5.48xlarge,free\n";
  const absl::Status wrong = NodeFactsOfFile(nodes, list).status();
  EXPECT_EQ(wrong.message(), list + ":2: price: \"free\" is not a decimal number up to 1e+15");
  EXPECT_TRUE(absl::IsNotFound(NodeFactsOfFile(nodes, "/nonexistent.csv").status()));
}

}  // namespace
}  // namespace outboard::plugin_host
