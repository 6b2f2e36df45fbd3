#include "plugin_host/sdk/node_facts/resource_slices.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk::resource_slices_test {
namespace {

v1beta1::ClusterObject Slice(const std::string& name, const std::string& devices,
                             int generation = 1, const std::string& driver = "gpu.nvidia.com") {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& slice = *object.mutable_generic_object();
  slice.set_resource(kResourceSlices);
  slice.set_name(name);
  slice.set_json(absl::StrCat(R"({"spec": {"driver": ")", driver,
                              R"(", "nodeName": "n", "pool": {"name": "n", "generation": )",
                              generation, R"(, "resourceSliceCount": 1}, "devices": [)", devices,
                              "]}}"));
  return object;
}
// A device as NVIDIA's DRA driver publishes it in resource.k8s.io/v1.
std::string Device(const std::string& product, const std::string& architecture,
                   const std::string& capability, const std::string& memory,
                   const std::string& more = "") {
  return absl::StrCat(
      R"({"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "productName": {"string": ")",
      product, R"("}, "architecture": {"string": ")", architecture,
      R"("}, "cudaComputeCapability": {"version": ")", capability,
      R"("}}, "capacity": {"memory": {"value": ")", memory, R"("}})", more, "}");
}
const std::string kH100 = Device("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi");

NodeFacts FactsOf(const NodeFactsReader& reader, const testing::NodeBuilder& node) {
  return reader.Of(node, nullptr);
}

TEST(ResourceSlicesTest, TheyComeBeforeFeatureDiscovery) {
  NodeFactsReader reader;
  const testing::NodeBuilder node = testing::NodeBuilder("n")
                                        .Label("nvidia.com/gpu.product", "NVIDIA-A100-80GB-PCIe")
                                        .Label("nvidia.com/gpu.count", "4");
  EXPECT_EQ(reader.SetObject(Slice("s", absl::StrCat(kH100, ",", kH100))), "n");
  NodeFacts facts = FactsOf(reader, node);
  EXPECT_EQ(facts.model.value, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(facts.model.source, FactSource::kResourceSlice);
  EXPECT_EQ(facts.memory_gb.value, 80);
  EXPECT_EQ(facts.family.value, "hopper");
  EXPECT_EQ(facts.generation.value, 9);
  EXPECT_EQ(facts.gpus.value, 2);
  EXPECT_EQ(facts.islands.value, (std::vector<GpuIsland>{{2, 0}}));
  EXPECT_EQ(reader.RemoveObject(Slice("s", "")), "n");
  EXPECT_EQ(FactsOf(reader, node).model.source, FactSource::kFeatureDiscovery);
}

// Only slices describe several models on one node.
TEST(ResourceSlicesTest, SeveralModels) {
  NodeFactsReader reader;
  reader.SetObject(Slice(
      "s", absl::StrCat(kH100, ",", Device("NVIDIA L40S", "Ada Lovelace", "8.9.0", "46068Mi"))));
  const NodeFacts facts = FactsOf(
      reader, testing::NodeBuilder("n").Label("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"));
  EXPECT_FALSE(facts.model.known());
  EXPECT_EQ(facts.memory_gb.value, 45) << "of the smallest";
  EXPECT_EQ(facts.family.value, "ada-lovelace") << "of the oldest";
  EXPECT_FALSE(facts.topology.known());
}

TEST(ResourceSlicesTest, OldGenerationsOfAPoolAndOtherDriversDoNotCount) {
  ResourceSlices slices;
  slices.Set(Slice("old", absl::StrCat(kH100, ",", kH100), 1));
  slices.Set(Slice("new", kH100, 2));
  slices.Set(Slice("net", kH100, 3, "dra.net"));
  ASSERT_NE(slices.Find("n"), nullptr);
  EXPECT_EQ(slices.Find("n")->size(), 1u);
  EXPECT_EQ(slices.Find("other"), nullptr);
  slices.Clear();
  EXPECT_EQ(slices.Find("n"), nullptr);
}

TEST(ResourceSlicesTest, MigDevicesAndTaints) {
  NodeFactsReader reader;
  const std::string mig =
      R"({"name": "gpu-0-mig", "attributes": {"type": {"string": "mig"}, "profile": {"string": "1g.10gb"}}})";
  const auto tainted = [](const char* effect) {
    return Device("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi",
                  absl::StrCat(R"(, "taints": [{"key": "gpu.nvidia.com/xid", "effect": ")", effect,
                               R"("}])"));
  };
  reader.SetObject(
      Slice("s", absl::StrCat(kH100, ",", tainted("NoSchedule"), ",", tainted("None"), ",", mig)));
  const NodeFacts facts = FactsOf(reader, testing::NodeBuilder("n"));
  EXPECT_EQ(facts.gpus.value, 3);
  EXPECT_EQ(facts.tainted_gpus.value, 1) << "the effect None only informs";
  EXPECT_EQ(facts.gpu_problems.value,
            (std::vector<GpuProblem>{{"1 of 3 devices tainted", GpuProblem::Certainty::kCounted}}));
}

TEST(ResourceSlicesTest, WhatCannotBeReadIsAbsent) {
  ResourceSlices slices;
  for (const char* devices :
       {"", "1", "[]", R"({"attributes": 3})", R"({"basic": {}})", R"("gpu")"}) {
    slices.Set(Slice("s", devices));
    EXPECT_EQ(slices.Find("n"), nullptr) << devices;
  }
  // v1beta1, with a capacity that is not a quantity.
  slices.Set(Slice("s", R"({"name": "g", "basic": {"attributes": {"productName": {"string": "X"}},
                            "capacity": {"memory": {"value": "much"}}}})"));
  ASSERT_NE(slices.Find("n"), nullptr);
  EXPECT_EQ(slices.Find("n")->front().product, "X");
  EXPECT_EQ(slices.Find("n")->front().memory_gb, 0);
  v1beta1::ClusterObject broken = Slice("s", "");
  broken.mutable_generic_object()->set_json("{");
  slices.Set(broken);
  EXPECT_EQ(slices.Find("n"), nullptr);
}

}  // namespace
}  // namespace outboard::sdk::resource_slices_test
