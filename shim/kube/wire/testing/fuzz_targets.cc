#include "shim/kube/wire/testing/fuzz_targets.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/strip.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/testing/promises.h"

namespace outboard::kube {
std::string SeedBytes(absl::string_view input) {
  if (!absl::ConsumePrefix(&input, "hex:")) return std::string(input);
  std::string digits;
  for (char c : input) {
    if (absl::ascii_isxdigit(c)) digits += c;
  }
  if (digits.size() % 2 != 0) digits.pop_back();
  return absl::HexStringToBytes(digits);
}

void FuzzQuantity(absl::string_view input) {
  if (input.size() > 10000) return;
  const absl::StatusOr<int64_t> value = QuantityValue(input);
  const absl::StatusOr<int64_t> millis = QuantityMilliValue(input);
  Require(value.ok() == millis.ok(), "both scales accept the same texts");
  if (!value.ok()) return;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Require(*value >= -kMax && *millis >= -kMax, "amounts are symmetric around zero");
  if (*value > kMax / 1000 || *value < -kMax / 1000) return;
  const int64_t size = *millis < 0 ? -*millis : *millis;
  const int64_t rounded = *value < 0 ? -*value : *value;
  Require(rounded == (size + 999) / 1000, "both scales round the same amount away from zero");
}

void FuzzWatchFrame(absl::string_view input) {
  const std::string bytes = SeedBytes(input);
  const absl::StatusOr<WatchFrame> frame = DecodeWatchFrame(bytes);
  // Also decode objects alone, so that a damaged frame does not hide them.
  const absl::string_view raw = frame.ok() ? frame->object.raw : absl::string_view(bytes);
  Decoder decoder;
  if (auto pod = decoder.DecodePod(raw); pod.ok()) RequireGood(**pod);
  if (auto node = decoder.DecodeNode(raw); node.ok()) RequireGood(**node);
  if (auto ns = decoder.DecodeNamespace(raw); ns.ok()) RequireGood(**ns);
  if (auto page = decoder.DecodePodList(raw); page.ok()) {
    for (const PodPtr& pod : page->items) RequireGood(*pod);
  }
  if (auto page = decoder.DecodeNodeList(raw); page.ok()) {
    for (const NodePtr& node : page->items) RequireGood(*node);
  }
  if (auto bookmark = decoder.DecodeBookmark(raw); bookmark.ok()) {
    Require(!bookmark->resource_version.empty(), "a bookmark has a version");
  }
  (void)decoder.DecodeStatus(raw);
}

}  // namespace outboard::kube
