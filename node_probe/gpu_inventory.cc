#include "node_probe/gpu_inventory.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/label_values.h"

namespace outboard::node_probe {
namespace {

// Older drivers name a part `MIG-GPU-UUID/INSTANCE/INSTANCE`.
constexpr size_t kMaxUuid = 80;

absl::Status InvalidList(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("nvidia-smi -L: ", what));
}

bool IsUuid(absl::string_view text, absl::string_view prefix) {
  return text.size() > prefix.size() && text.size() <= kMaxUuid &&
         text.substr(0, prefix.size()) == prefix &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '/';
         });
}

// The UUID at the end of a line: `… (UUID: GPU-…)`.
std::optional<absl::string_view> UuidOf(absl::string_view line, absl::string_view prefix) {
  constexpr absl::string_view kBefore = "(UUID: ";
  const size_t at = line.rfind(kBefore);
  if (at == absl::string_view::npos) return std::nullopt;
  absl::string_view uuid = line.substr(at + kBefore.size());
  if (!absl::ConsumeSuffix(&uuid, ")") || !IsUuid(uuid, prefix)) return std::nullopt;
  return uuid;
}

}  // namespace

std::optional<int64_t> GpuInventory::IndexOf(absl::string_view device_id) const {
  const auto found = index_by_uuid.find(device_id.substr(0, device_id.find("::")));
  if (found == index_by_uuid.end()) return std::nullopt;
  return found->second;
}

absl::StatusOr<GpuInventory> ParseGpuInventory(absl::string_view text) {
  GpuInventory inventory;
  sdk::GpuSet seen = 0;
  std::optional<int64_t> gpu;  // whose parts follow
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    absl::string_view rest = line;
    std::optional<absl::string_view> uuid;
    if (absl::ConsumePrefix(&rest, "GPU ")) {
      gpu = sdk::ParseCount(rest.substr(0, rest.find(':')), sdk::kMaxGpuId);
      uuid = UuidOf(line, "GPU-");
      if (!gpu || !uuid) return InvalidList(absl::StrCat("malformed line: ", line.substr(0, 80)));
      if ((seen >> *gpu & 1) != 0) return InvalidList(absl::StrCat("two lines of GPU ", *gpu));
      seen |= sdk::GpuSet{1} << *gpu;
    } else if (absl::ConsumePrefix(&rest, "MIG ") && gpu) {
      uuid = UuidOf(line, "MIG-");
      if (!uuid) return InvalidList(absl::StrCat("malformed line: ", line.substr(0, 80)));
      inventory.partitioned |= sdk::GpuSet{1} << *gpu;
    } else {
      continue;
    }
    if (!inventory.index_by_uuid.emplace(*uuid, *gpu).second)
      return InvalidList(absl::StrCat("two devices with the UUID ", *uuid));
    if (inventory.index_by_uuid.size() > kMaxDevices)
      return InvalidList(absl::StrCat("more than ", kMaxDevices, " devices"));
  }
  if (seen == 0) return InvalidList("no GPUs");
  return inventory;
}

}  // namespace outboard::node_probe
