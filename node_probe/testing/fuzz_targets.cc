#include "node_probe/testing/fuzz_targets.h"

#include "integration/fuzz/seeds.h"
#include "node_probe/gpu_inventory.h"
#include "node_probe/topology_matrix.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/node_facts/gpu_islands.h"

namespace outboard::node_probe {
namespace {

void FuzzInventory(absl::string_view text) {
  const auto inventory = ParseGpuInventory(text);
  if (!inventory.ok()) return;
  fuzz::Require(!inventory->index_by_uuid.empty(), "an inventory has GPUs");
  fuzz::Require(inventory->index_by_uuid.size() <= kMaxDevices, "an inventory is bounded");
  for (const auto& [uuid, index] : inventory->index_by_uuid) {
    fuzz::Require(index >= 0 && index <= sdk::kMaxGpuId, "an index is valid");
    fuzz::Require(inventory->IndexOf(uuid + "::3") == index, "a shared GPU is found");
  }
}

void FuzzPodGpus(absl::string_view text) {
  const auto pods = sdk::ParsePodGpus(text);
  if (!pods) return;
  size_t left_out = 0;
  const std::string written = sdk::FormatPodGpus(*pods, &left_out);
  fuzz::Require(left_out == 0, "the shortest text fits where a longer one did");
  fuzz::Require(sdk::ParsePodGpus(written) == pods, "pods are read as written");
}

void FuzzMatrix(absl::string_view text, sdk::GpuSet isolated) {
  const auto islands = ParseTopologyMatrix(text, isolated);
  if (!islands.ok()) return;
  const std::string written = sdk::FormatIslands(*islands);
  fuzz::Require(sdk::ParseIslands(written) == *islands, "islands are read as written");
  for (const sdk::GpuSet island : islands->islands)
    fuzz::Require((island & isolated) == 0 || (island & (island - 1)) == 0,
                  "an isolated GPU is an island");
}

}  // namespace

void FuzzNvidiaSmi(absl::string_view bytes) {
  if (bytes.empty()) return;
  const char choice = bytes[0];
  bytes.remove_prefix(1);
  if (choice == 'L') return FuzzInventory(bytes);
  if (choice == 'P') return FuzzPodGpus(bytes);
  FuzzMatrix(bytes, static_cast<unsigned char>(choice));
}

}  // namespace outboard::node_probe
