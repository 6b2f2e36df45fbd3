#include "plugins/topology_aware_gpu_gate/node_topology.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

using sdk::testing::NodeBuilder;

class NodeTopologyTest : public testing::Test {
 protected:
  NodeTopology Read(const NodeBuilder& node) {
    malformed_.clear();
    return ReadNodeTopology(node.Build(),
                            [this](absl::string_view key, absl::string_view, absl::string_view) {
                              malformed_.emplace_back(key);
                            });
  }
  std::vector<std::string> malformed_;
};

TEST_F(NodeTopologyTest, NothingIsMadeUp) {
  const NodeTopology none = Read(NodeBuilder("n"));
  EXPECT_EQ(none, NodeTopology());
  EXPECT_EQ(none.LargestIsland(8), 0);
  EXPECT_EQ(Read(NodeBuilder("n").Label(kTopologyLabel, "pcie")).LargestIsland(8), 0);
  EXPECT_TRUE(malformed_.empty());
}

TEST_F(NodeTopologyTest, WithoutIslandsNvlinkReachesAll) {
  for (const char* topology : {"nvlink", "NVSwitch"}) {
    const NodeTopology node = Read(NodeBuilder("n").Label(kTopologyLabel, topology));
    EXPECT_TRUE(node.one_island) << topology;
    EXPECT_EQ(node.LargestIsland(8), 8);
  }
}

TEST_F(NodeTopologyTest, IslandsByLabel) {
  const NodeTopology node = Read(NodeBuilder("n")
                                     .Label(kTopologyLabel, "nvlink")
                                     .Label("nvidia.com/gpu-island.a", "2")
                                     .Label("nvidia.com/gpu-island.b", "4")
                                     .Label("nvidia.com/gpu-island.c", "0"));
  EXPECT_FALSE(node.one_island);
  EXPECT_EQ(node.islands, (std::vector<NodeTopology::Island>{{4, 0}, {2, 0}}));
  EXPECT_EQ(node.LargestIsland(8), 4);
  EXPECT_EQ(node.LargestIsland(3), 3) << "fewer GPUs are allocatable";
}

TEST_F(NodeTopologyTest, TheProbeKnowsMoreThanLabels) {
  const NodeTopology node = Read(NodeBuilder("n")
                                     .Label("nvidia.com/gpu-island.a", "8")
                                     .Annotation(kIslandsAnnotation, "nvlink 0-3;4-7"));
  EXPECT_EQ(node.topology, Topology::kNvlink);
  EXPECT_EQ(node.islands, (std::vector<NodeTopology::Island>{{4, 0x0f}, {4, 0xf0}}));
  const NodeTopology said = Read(
      NodeBuilder("n").Label(kTopologyLabel, "pcie").Annotation(kIslandsAnnotation, "nvlink 0,1"));
  EXPECT_EQ(said.topology, Topology::kPcie) << "the label overrides the annotation";
}

TEST_F(NodeTopologyTest, UnreadableValuesAreReportedAndCountAsAbsent) {
  const NodeTopology node = Read(NodeBuilder("n")
                                     .Label(kTopologyLabel, "warp")
                                     .Label("nvidia.com/gpu-island.a", "-4")
                                     .Label("nvidia.com/gpu-island.b", "1000000000")
                                     .Annotation(kIslandsAnnotation, "0-7"));
  EXPECT_EQ(node, NodeTopology());
  EXPECT_EQ(malformed_.size(), 4u);
  // As if the label were absent.
  EXPECT_TRUE(
      Read(
          NodeBuilder("n").Label(kTopologyLabel, "nvlink").Label("nvidia.com/gpu-island.a", "four"))
          .one_island);
}

}  // namespace
}  // namespace outboard::topology_aware_gpu_gate
