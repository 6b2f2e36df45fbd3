#include "plugins/topology_aware_gpu_gate/node_topology.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

using sdk::testing::NodeBuilder;

constexpr char kTopologyLabel[] = "nvidia.com/gpu-topology";

NodeTopology Read(const NodeBuilder& node, bool pass_unknown = false) {
  return TopologyOf(sdk::NodeFactsReader().Of(node.Build(), nullptr), pass_unknown);
}

TEST(NodeTopologyTest, NothingIsMadeUp) {
  const NodeTopology none = Read(NodeBuilder("n"));
  EXPECT_EQ(none, NodeTopology());
  EXPECT_EQ(none.LargestIsland(8), 0);
  EXPECT_EQ(Read(NodeBuilder("n").Label(kTopologyLabel, "pcie")).LargestIsland(8), 0);
}

TEST(NodeTopologyTest, UnknownMayPass) {
  const NodeTopology unknown = Read(NodeBuilder("n"), /*pass_unknown=*/true);
  EXPECT_TRUE(unknown.unknown);
  EXPECT_EQ(unknown.LargestIsland(8), 8);
  EXPECT_EQ(Read(NodeBuilder("n").Label(kTopologyLabel, "pcie"), true).LargestIsland(8), 0);
}

TEST(NodeTopologyTest, WithoutIslandsNvlinkReachesAll) {
  for (const char* topology : {"nvlink", "NVSwitch"}) {
    const NodeTopology node = Read(NodeBuilder("n").Label(kTopologyLabel, topology));
    EXPECT_TRUE(node.one_island) << topology;
    EXPECT_EQ(node.LargestIsland(8), 8);
  }
}

TEST(NodeTopologyTest, IslandsByLabel) {
  const NodeTopology node = Read(NodeBuilder("n")
                                     .Label(kTopologyLabel, "nvlink")
                                     .Label("nvidia.com/gpu-island.a", "2")
                                     .Label("nvidia.com/gpu-island.b", "4")
                                     .Label("nvidia.com/gpu-island.c", "0"));
  EXPECT_FALSE(node.one_island);
  EXPECT_EQ(node.islands, (std::vector<sdk::GpuIsland>{{4, 0}, {2, 0}}));
  EXPECT_EQ(node.LargestIsland(8), 4);
  EXPECT_EQ(node.LargestIsland(3), 3) << "fewer GPUs are allocatable";
}

}  // namespace
}  // namespace outboard::topology_aware_gpu_gate
