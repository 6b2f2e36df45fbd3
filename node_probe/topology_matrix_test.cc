#include "node_probe/topology_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::node_probe {
namespace {

using sdk::FormatIslands;
using sdk::ParseIslands;
using Rows = std::vector<std::vector<std::string>>;

// nvidia-smi's format: tabs, an underlined header, network cards, affinities, a legend.
std::string Printed(const Rows& rows, int cards = 2) {
  std::string text = "\x1b[4m";
  for (size_t i = 0; i < rows.size(); ++i) absl::StrAppend(&text, "\tGPU", i);
  for (int i = 0; i < cards; ++i) absl::StrAppend(&text, "\tNIC", i);
  text += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    absl::StrAppend(&text, "GPU", i, "\t", absl::StrJoin(rows[i], "\t"));
    for (int k = 0; k < cards; ++k) text += "\tPXB";
    text += "\t0-15,128-143\t0\t\tN/A\n";
  }
  for (int i = 0; i < cards; ++i) {
    absl::StrAppend(&text, "NIC", i);
    for (size_t k = 0; k < rows.size(); ++k) text += "\tSYS";
    text += "\t X \t\t\t\t\n";
  }
  return text +
         "\nLegend:\n\n  X    = Self\n"
         "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes\n"
         "  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
         "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
}

// link(i, k) connects GPU i and k.
template <typename Fn>
Rows Connect(size_t gpus, Fn link) {
  Rows rows(gpus);
  for (size_t i = 0; i < gpus; ++i) {
    for (size_t k = 0; k < gpus; ++k)
      rows[i].push_back(i == k ? std::string(" X ") : link(std::min(i, k), std::max(i, k)));
  }
  return rows;
}

std::string IslandsOf(const std::string& text, sdk::GpuSet isolated = 0) {
  const auto islands = ParseTopologyMatrix(text, isolated);
  return islands.ok() ? FormatIslands(*islands) : std::string(islands.status().message());
}

Rows All(size_t gpus, const std::string& link) {
  return Connect(gpus, [&](size_t, size_t) { return link; });
}

TEST(TopologyMatrixTest, DgxA100) {
  EXPECT_EQ(IslandsOf(Printed(All(8, "NV12"), 10)), "nvswitch 0-7");
}
TEST(TopologyMatrixTest, DgxH100) {
  EXPECT_EQ(IslandsOf(Printed(All(8, "NV18"), 12)), "nvswitch 0-7");
}
TEST(TopologyMatrixTest, Dgx2) { EXPECT_EQ(IslandsOf(Printed(All(16, "NV6"))), "nvswitch 0-15"); }
TEST(TopologyMatrixTest, FourA100WithoutASwitch) {
  EXPECT_EQ(IslandsOf(Printed(All(4, "NV4"))), "nvlink 0-3");
}

TEST(TopologyMatrixTest, FourPcieCards) {
  EXPECT_EQ(IslandsOf("\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
                      "GPU0\t X \tPIX\tPXB\tSYS\t0-31\t0\n"
                      "GPU1\tPIX\t X \tPHB\tSYS\t0-31\t0\n"
                      "GPU2\tPXB\tPHB\t X \tNODE\t0-31\t0\n"
                      "GPU3\tSYS\tSYS\tNODE\t X \t32-63\t1\n"),
            "pcie 0;1;2;3");
}

TEST(TopologyMatrixTest, TwoIslandsOfFour) {
  EXPECT_EQ(IslandsOf(Printed(Connect(8,
                                      [](size_t i, size_t k) {
                                        return i / 4 == k / 4 ? std::string("NV4")
                                                              : std::string("SYS");
                                      }))),
            "nvlink 0-3;4-7");
}

TEST(TopologyMatrixTest, PairsWithBridges) {
  EXPECT_EQ(IslandsOf(Printed(Connect(4,
                                      [](size_t i, size_t k) {
                                        return i / 2 == k / 2 ? std::string("NV12")
                                                              : std::string("SYS");
                                      }))),
            "nvlink 0,1;2,3");
}

// DGX-1: two groups of four, and each GPU linked with its twin in the other group.
TEST(TopologyMatrixTest, HybridCubeMesh) {
  EXPECT_EQ(
      IslandsOf(Printed(Connect(8,
                                [](size_t i, size_t k) {
                                  if (i / 4 == k / 4)
                                    return std::string(i + k == 3 || i + k == 11 ? "NV2" : "NV1");
                                  return std::string(k == i + 4 ? "NV2" : "SYS");
                                }))),
      "nvlink 0-3;4-7");
}

TEST(TopologyMatrixTest, LinksOfIsolatedGpusDoNotCount) {
  EXPECT_EQ(IslandsOf(Printed(All(8, "NV12")), 0b10000001), "nvswitch 0;1-6;7");
  EXPECT_EQ(IslandsOf(Printed(All(4, "NV4")), 0b1111), "pcie 0;1;2;3");
  // GPU 1 and 2 are the only ones left of an island of four.
  EXPECT_EQ(IslandsOf(Printed(All(4, "NV4")), 0b1001), "nvlink 0;1,2;3");
}

TEST(TopologyMatrixTest, OneGpu) {
  EXPECT_EQ(IslandsOf("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                      "GPU0\t X \t0-15\t0\t\tN/A\n"),
            "pcie 0");
}

TEST(TopologyMatrixTest, SpacesAndWindowsLinesWillDo) {
  EXPECT_EQ(IslandsOf("      GPU0   GPU2   CPU Affinity\r\nGPU0   X    NV2    0-7\r\n"
                      "GPU2  NV2     X     0-7\r\n"),
            "nvlink 0,2");
}

TEST(TopologyMatrixTest, FaultsAreNamed) {
  const std::string header = "\tGPU0\tGPU1\tCPU Affinity\n";
  EXPECT_EQ(IslandsOf(""), "nvidia-smi topo -m: no GPUs");
  EXPECT_EQ(IslandsOf("NVIDIA-SMI has failed because it couldn't communicate with the driver\n"),
            "nvidia-smi topo -m: no GPUs");
  EXPECT_EQ(IslandsOf(header), "nvidia-smi topo -m: no row of GPU0");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tNV1\nGPU1\tNV1\n"),
            "nvidia-smi topo -m: row of GPU1 is too short");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tNV1\nGPU1\tNV2\tX\n"),
            "nvidia-smi topo -m: GPU0 and GPU1 have different links");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tWARP\nGPU1\tWARP\tX\n"),
            "nvidia-smi topo -m: GPU0 and GPU1: unknown link WARP");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tNV0\nGPU1\tNV0\tX\n"),
            "nvidia-smi topo -m: GPU0 and GPU1: unknown link NV0");
  EXPECT_EQ(IslandsOf(header + "GPU0\tNV1\tX\n"),
            "nvidia-smi topo -m: GPU0 has no X in its own column");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tNV1\nGPU0\tX\tNV1\n"),
            "nvidia-smi topo -m: two rows of GPU0");
  EXPECT_EQ(IslandsOf(header + "GPU0\tX\tNV1\nGPU1\tNV1\tX\nGPU2\tNV1\tX\n").substr(0, 19),
            "nvidia-smi topo -m:");
}

// Random bytes: the result is an answer or an error, and never a GPU in two islands.
TEST(TopologyMatrixTest, DamagedTextDoesNoHarm) {
  const std::string whole = Printed(All(8, "NV12"));
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random() % 256);
    text.resize(text.size() - random() % 40);
    const auto islands = ParseTopologyMatrix(text);
    if (!islands.ok()) continue;
    EXPECT_TRUE(ParseIslands(FormatIslands(*islands))) << FormatIslands(*islands);
  }
}

}  // namespace
}  // namespace outboard::node_probe
