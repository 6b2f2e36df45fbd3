#include "node_probe/gpu_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::node_probe {
namespace {

using ::testing::HasSubstr;

std::string ListOf(const std::string& machine) {
  std::ifstream file("node_probe/testdata/machines/" + machine + "/list");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(GpuInventoryTest, GpusByUuid) {
  const auto inventory = ParseGpuInventory(ListOf("mixed"));
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(inventory->index_by_uuid.size(), 4u);
  EXPECT_EQ(inventory->partitioned, 0u);
  EXPECT_EQ(inventory->IndexOf("GPU-e6fec031-0e45-558d-b2b6-5b40b188dac7"), 0);
  EXPECT_EQ(inventory->IndexOf("GPU-cca9cbd4-70ca-5d13-8856-5b5ba6a44a32"), 3);
  EXPECT_EQ(inventory->IndexOf("GPU-cca9cbd4-70ca-5d13-8856-5b5ba6a44a32::7"), 3)
      << "time-sliced or MPS";
  for (const char* other : {"", "::", "GPU-", "GPU-cca9cbd4", "0", "mlx5_0"})
    EXPECT_EQ(inventory->IndexOf(other), std::nullopt) << other;
}

TEST(GpuInventoryTest, PartsOfMigBelongToTheirGpu) {
  const auto inventory = ParseGpuInventory(ListOf("mig"));
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(inventory->index_by_uuid.size(), 8u + 2 + 7);
  EXPECT_EQ(inventory->partitioned, 0b10000001u);
  EXPECT_EQ(inventory->IndexOf("MIG-ecc5aa4a-2b56-5c73-83f2-1a3c4b3f0cac"), 0);
  EXPECT_EQ(inventory->IndexOf("GPU-be4cdfd6-d8f4-5265-b1bc-2e89cead422a"), 1);
}

TEST(GpuInventoryTest, OldNamesOfParts) {
  const auto inventory = ParseGpuInventory(
      "GPU 5: A100-SXM4-40GB (UUID: GPU-1)\n"
      "  MIG 3g.20gb Device 0: (UUID: MIG-GPU-1/1/0)\n");
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(inventory->IndexOf("MIG-GPU-1/1/0"), 5);
}

TEST(GpuInventoryTest, OtherLinesAreSkipped) {
  const auto inventory = ParseGpuInventory(
      "Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\r\n"
      "GPU 1: A (b) (UUID: GPU-1)\r\nWARNING: infoROM is corrupted at gpu 0000:02:00.0\r\n");
  ASSERT_TRUE(inventory.ok()) << inventory.status();
  EXPECT_EQ(inventory->index_by_uuid.size(), 1u);
  EXPECT_EQ(inventory->IndexOf("GPU-1"), 1);
}

TEST(GpuInventoryTest, FaultsAreNamed) {
  const auto error = [](const std::string& text) {
    return std::string(ParseGpuInventory(text).status().message());
  };
  EXPECT_EQ(error(""), "nvidia-smi -L: no GPUs");
  EXPECT_EQ(error("No devices found.\n"), "nvidia-smi -L: no GPUs");
  EXPECT_EQ(error("  MIG 1g.5gb Device 0: (UUID: MIG-1)\n"), "nvidia-smi -L: no GPUs");
  EXPECT_EQ(error("GPU 0: A (UUID: GPU-1)\nGPU 0: A (UUID: GPU-2)\n"),
            "nvidia-smi -L: two lines of GPU 0");
  EXPECT_EQ(error("GPU 0: A (UUID: GPU-1)\nGPU 1: A (UUID: GPU-1)\n"),
            "nvidia-smi -L: two devices with the UUID GPU-1");
  for (const char* line :
       {"GPU 64: A (UUID: GPU-1)", "GPU x: A (UUID: GPU-1)", "GPU 0: A", "GPU 0: A (UUID: MIG-1)",
        "GPU 0: A (UUID: GPU-)", "GPU 0: A (UUID: GPU-1;2)", "GPU 0: A (UUID: GPU-1) x"}) {
    EXPECT_EQ(error(line), absl::StrCat("nvidia-smi -L: malformed line: ", line));
  }
  EXPECT_THAT(error("GPU 0: A (UUID: GPU-" + std::string(1000, 'a') + ")"),
              HasSubstr("malformed line"));
  EXPECT_LT(error("GPU 0: " + std::string(1000, 'a')).size(), 150u);
  EXPECT_EQ(error("GPU 0: A (UUID: GPU-1)\n MIG 1g.5gb Device 0: (UUID: x)"),
            "nvidia-smi -L: malformed line: MIG 1g.5gb Device 0: (UUID: x)");
  std::string many = "GPU 0: A (UUID: GPU-1)\n";
  for (int i = 0; i < 1023; ++i) absl::StrAppend(&many, "MIG 1g Device: (UUID: MIG-", i, ")\n");
  EXPECT_EQ(error(many), "");
  EXPECT_EQ(error(many + "MIG 1g Device: (UUID: MIG-last)\n"),
            "nvidia-smi -L: more than 1024 devices");
}

}  // namespace
}  // namespace outboard::node_probe
