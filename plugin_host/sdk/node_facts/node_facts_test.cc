#include "plugin_host/sdk/node_facts/node_facts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugin_host/sdk/node_facts/describe.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::node_facts_test {
namespace {

using Certainty = GpuProblem::Certainty;
using testing::NodeBuilder;

class NodeFactsTest : public ::testing::Test {
 protected:
  NodeFacts ReadNode(const v1beta1::Node& node, const std::string& args = "{}") {
    ArgsReader reader(args);
    NodeFactsOptions options = ReadNodeFactsOptions(reader.root());
    options.checks_generations = true;
    EXPECT_TRUE(reader.Finish().empty());
    malformed_.clear();
    return NodeFactsReader(std::move(options)).Of(node, &malformed_);
  }
  NodeFacts Read(const std::map<std::string, std::string>& labels, const std::string& args = "{}") {
    NodeBuilder node("n");
    for (const auto& [key, value] : labels) node.Label(key, value);
    return ReadNode(node.Build(), args);
  }
  std::vector<MalformedLabel> malformed_;
};

TEST_F(NodeFactsTest, UnknownIsAValue) {
  const NodeFacts facts = Read({});
  EXPECT_EQ(facts, NodeFacts());
  EXPECT_EQ(std::string(FactSourceName(facts.model.source)), "unknown");
  EXPECT_TRUE(malformed_.empty());
}

TEST_F(NodeFactsTest, OwnLabelsWin) {
  const NodeFacts facts = Read({{"gpu-memory-gb", "40"},
                                {"gpu-generation", "A100"},
                                {"nvidia.com/gpu-topology", "pcie"},
                                {"nvlink-fabric-id", "f1"},
                                {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                                {"nvidia.com/gpu.memory", "81559"},
                                {"nvidia.com/gpu.count", "8"},
                                {"nvidia.com/gpu.clique", "c.1"}});
  EXPECT_EQ(facts.memory_gb.value, 40);
  EXPECT_EQ(facts.memory_gb.source, FactSource::kAdministrator);
  EXPECT_EQ(facts.generation.value, 8);
  EXPECT_EQ(facts.topology.value, GpuTopology::kPcie);
  EXPECT_EQ(facts.islands.value, std::vector<GpuIsland>());
  EXPECT_EQ(facts.nvlink_domain.value->value, "f1");
}

TEST_F(NodeFactsTest, TheProbeKnowsMoreThanLabels) {
  const NodeFacts probed =
      ReadNode(NodeBuilder("n")
                   .Label("nvidia.com/gpu-island.a", "8")
                   .Annotation("accelerator.sched.io/gpu-islands", "nvlink 0-3;4-7")
                   .Build());
  EXPECT_EQ(probed.topology.value, GpuTopology::kNvlink);
  EXPECT_EQ(probed.islands.value, (std::vector<GpuIsland>{{4, 0x0f}, {4, 0xf0}}));
  EXPECT_EQ(probed.islands.origin, "annotation accelerator.sched.io/gpu-islands");
  const NodeFacts labelled =
      ReadNode(NodeBuilder("n")
                   .Label("nvidia.com/gpu-topology", "pcie")
                   .Annotation("accelerator.sched.io/gpu-islands", "nvlink 0,1")
                   .Build());
  EXPECT_EQ(labelled.topology.value, GpuTopology::kPcie) << "the label overrides the annotation";
}

// With islands by label only, what is concluded adds the topology.
TEST_F(NodeFactsTest, IslandsByLabelStayWithAConcludedTopology) {
  const NodeFacts facts = Read({{"nvidia.com/gpu-island.a", "2"},
                                {"nvidia.com/gpu-island.b", "4"},
                                {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                                {"nvidia.com/gpu.count", "8"}});
  EXPECT_EQ(facts.topology.value, GpuTopology::kNvswitch);
  EXPECT_EQ(facts.islands.value, (std::vector<GpuIsland>{{4, 0}, {2, 0}}));
}

TEST_F(NodeFactsTest, MalformedLabelsCountAsAbsentAndAreReported) {
  for (const char* text : {"", "much", "-8", "+8", "8GB", "nan", "inf", "1e300"}) {
    const NodeFacts facts = Read({{"gpu-memory-gb", text}, {"nvidia.com/gpu.memory", "16384"}});
    EXPECT_EQ(facts.memory_gb.value, 16) << text;
    ASSERT_EQ(malformed_.size(), 1u) << text;
    EXPECT_EQ(malformed_[0].key, "gpu-memory-gb");
    EXPECT_EQ(malformed_[0].value, text);
  }
  const NodeFacts facts = ReadNode(NodeBuilder("n")
                                       .Label("nvidia.com/gpu-topology", "warp")
                                       .Label("gpu-interconnect", "sli")
                                       .Label("gpu-generation", "k80")
                                       .Label("nvidia.com/gpu-island.a", "-4")
                                       .Label("nvidia.com/gpu.product", "NVIDIA-")
                                       .Label("nvidia.com/gpu.count", "many")
                                       .Label("nvidia.com/gpu.replicas", "x")
                                       .Label("nvidia.com/gpu.compute.major", "nine")
                                       .Label("cloud.google.com/gke-spot", "yes")
                                       .Annotation("accelerator.sched.io/gpu-islands", "0-7")
                                       .Build());
  EXPECT_EQ(facts, NodeFacts());
  EXPECT_EQ(malformed_.size(), 10u);
}

TEST_F(NodeFactsTest, AGenerationByAnotherNameIsReportedOnlyToPluginsThatReadGenerations) {
  NodeFactsReader reader;
  std::vector<MalformedLabel> malformed;
  EXPECT_FALSE(
      reader.Of(NodeBuilder("n").Label("gpu-generation", "b200"), &malformed).generation.known());
  EXPECT_TRUE(malformed.empty());
}

TEST_F(NodeFactsTest, ArgumentsExtendTheTables) {
  const std::string args = R"({"nodeFacts": {
    "instanceTypes": {"z9.large": {"model": "NVIDIA-A100-SXM4-40GB", "memoryGB": 40, "gpus": 4},
                      "p5.48xlarge": {"model": "X", "gpus": 2, "topology": "nvlink"}},
    "networkLevels": ["example.com/tor", "example.com/pod"],
    "nvlinkDomains": ["example.com/nvl"]}})";
  const NodeFacts own = Read({{"node.kubernetes.io/instance-type", "z9.large"},
                              {"example.com/tor", "t1"},
                              {"example.com/nvl", "d1"},
                              {"fabric.topograph.run/tier-0", "s1"}},
                             args);
  EXPECT_EQ(own.gpus.value, 4);
  EXPECT_EQ(own.topology.value, GpuTopology::kNvlink);
  EXPECT_EQ(own.network.value, (std::vector<NetworkLevel>{{"example.com/tor", "t1"}}));
  EXPECT_EQ(own.network.source, FactSource::kAdministrator);
  EXPECT_EQ(own.nvlink_domain.value->value, "d1");
  const NodeFacts replaced = Read({{"node.kubernetes.io/instance-type", "p5.48xlarge"}}, args);
  EXPECT_EQ(replaced.model.value, "X");
  EXPECT_EQ(replaced.topology.value, GpuTopology::kNvlink);
  EXPECT_EQ(replaced.islands.value, (std::vector<GpuIsland>{{2, 0}}));
}

TEST_F(NodeFactsTest, ArgumentsAreChecked) {
  ArgsReader reader(R"({"nodeFacts": {
    "instanceTypes": {"a": {"gpus": -1, "memoryGB": -1, "topology": "warp"}},
    "networkLevels": ["not a label"], "badConditions": [{"status": "Maybe"}], "other": 1}})");
  ReadNodeFactsOptions(reader.root());
  std::vector<std::string> fields;
  for (const ArgsProblem& problem : reader.Finish()) fields.push_back(problem.field);
  for (const char* field : {"nodeFacts.instanceTypes.a.gpus", "nodeFacts.instanceTypes.a.memoryGB",
                            "nodeFacts.instanceTypes.a.topology", "nodeFacts.networkLevels[0]",
                            "nodeFacts.badConditions[0].type", "nodeFacts.badConditions[0].status",
                            "nodeFacts.other"}) {
    EXPECT_NE(std::find(fields.begin(), fields.end(), field), fields.end()) << field;
  }
}

TEST_F(NodeFactsTest, IllGpus) {
  v1beta1::Node node = NodeBuilder("n").Allocatable({{"nvidia.com/gpu", "7"}});
  EXPECT_FALSE(ReadNode(node).gpu_problems.known()) << "neither capacity nor conditions";
  (*node.mutable_capacity()->mutable_scalar())["nvidia.com/gpu"] = 7;
  EXPECT_EQ(ReadNode(node).gpu_problems.value, std::vector<GpuProblem>());
  (*node.mutable_capacity()->mutable_scalar())["nvidia.com/gpu"] = 8;
  const auto add = [&](const char* type, v1beta1::ConditionStatus status) {
    v1beta1::Condition& condition = *node.add_conditions();
    condition.set_type(type);
    condition.set_status(status);
  };
  add("GpuNvlinkWatch", v1beta1::CONDITION_STATUS_TRUE);
  add("GpuMemWatch", v1beta1::CONDITION_STATUS_FALSE);
  add("AcceleratedHardwareReady", v1beta1::CONDITION_STATUS_FALSE);
  add("Rusty", v1beta1::CONDITION_STATUS_TRUE);
  EXPECT_EQ(ReadNode(node).gpu_problems.value,
            (std::vector<GpuProblem>{
                {"condition GpuNvlinkWatch=True (NVSentinel)", Certainty::kCertain},
                {"condition AcceleratedHardwareReady=False (EKS)", Certainty::kCertain},
                {"1 of 8 nvidia.com/gpu not allocatable", Certainty::kCounted}}));
  // An administrator's condition replaces the known polarity.
  const NodeFacts own = ReadNode(node, R"({"nodeFacts": {"badConditions": [
    {"type": "Rusty"}, {"type": "AcceleratedHardwareReady", "status": "True"}]}})");
  EXPECT_EQ(own.gpu_problems.value,
            (std::vector<GpuProblem>{
                {"condition GpuNvlinkWatch=True (NVSentinel)", Certainty::kCertain},
                {"condition Rusty=True (nodeFacts.badConditions)", Certainty::kCertain},
                {"1 of 8 nvidia.com/gpu not allocatable", Certainty::kCounted}}));
}

TEST_F(NodeFactsTest, WhatOnlyMayBeIllIsSuspected) {
  v1beta1::Node node = NodeBuilder("n");
  v1beta1::Condition& condition = *node.add_conditions();
  condition.set_type("IBLinkFlapping");
  condition.set_status(v1beta1::CONDITION_STATUS_TRUE);
  EXPECT_EQ(
      ReadNode(node).gpu_problems.value,
      (std::vector<GpuProblem>{{"condition IBLinkFlapping=True (AKS)", Certainty::kSuspected}}));
  const auto labelled = [this](const char* health) {
    const std::string label = "sagemaker.amazonaws.com/node-health-status";
    return ReadNode(NodeBuilder("n").Label(label, health)).gpu_problems.value;
  };
  EXPECT_FALSE(labelled("Schedulable").has_value()) << "nothing else was looked at";
  for (const auto& [health, certainty] :
       std::map<std::string, Certainty>{{"Unschedulable", Certainty::kCertain},
                                        {"UnschedulablePendingReboot", Certainty::kCertain},
                                        {"Resting", Certainty::kSuspected}}) {
    const auto problems = labelled(health.c_str());
    ASSERT_TRUE(problems.has_value()) << health;
    EXPECT_EQ(problems->front().certainty, certainty) << health;
  }
}

TEST_F(NodeFactsTest, DescriptionsCountOneGpu) {
  EXPECT_EQ(
      Read({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/gpu.count", "1"}})
          .topology.origin,
      "label nvidia.com/gpu.product, 1 GPU");
  const NodeFacts facts = ReadNode(
      NodeBuilder("n").Label("nvidia.com/gpu-island.a", "1").Label("nvidia.com/gpu-island.b", "2"));
  for (const FactLine& line : DescribeFacts(facts)) {
    if (line.fact == "NVLink islands") {
      EXPECT_EQ(line.value, "2 GPUs, 1 GPU");
      return;
    }
  }
  FAIL() << "no line about islands";
}

}  // namespace
}  // namespace outboard::sdk::node_facts_test
