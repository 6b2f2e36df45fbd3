// Parses the output of `nvidia-smi -L`: which GPU a device id stands for.
#ifndef OUTBOARD_NODE_PROBE_GPU_INVENTORY_H_
#define OUTBOARD_NODE_PROBE_GPU_INVENTORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/gpu_devices.h"

namespace outboard::node_probe {

// More than 64 GPUs with 7 MIG devices each have.
inline constexpr size_t kMaxDevices = 1024;

// The GPUs of this machine.
struct GpuInventory {
  // Index by UUID: `GPU-…` of a GPU, `MIG-…` of a part of one.
  std::map<std::string, int64_t, std::less<>> index_by_uuid;
  // GPUs divided by MIG. Their parts cannot use NVLink.
  sdk::GpuSet partitioned = 0;

  // The GPU of a device id, as device plugins give them to the kubelet: a UUID, and for a shared
  // GPU `::` and a number behind it. nullopt: not a GPU of this machine.
  std::optional<int64_t> IndexOf(absl::string_view device_id) const;
};

// Reads lines `GPU 0: NAME (UUID: GPU-…)` and, below that of a divided GPU,
// `MIG 1g.5gb Device 0: (UUID: MIG-…)`; skips other lines, such as warnings. Pure.
//
// Errors: INVALID_ARGUMENT with the cause: no GPUs, an index or UUID twice, a malformed line of a
// GPU, more than kMaxDevices.
absl::StatusOr<GpuInventory> ParseGpuInventory(absl::string_view text);

}  // namespace outboard::node_probe

#endif  // OUTBOARD_NODE_PROBE_GPU_INVENTORY_H_
