#include "shim/kube/wire/testing/fuzz_targets.h"

#include <cstdio>
#include <cstdlib>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/object_reader.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// A host can parse what is sent to it: all strings are UTF-8 (protobuf checks that).
template <typename Message>
void RequireSendable(const Message& message) {
  Message copy;
  Require(copy.ParseFromString(message.SerializeAsString()), "a message that can be sent");
}

void RequireGood(const PodObject& pod) {
  Require(!pod.uid().empty() && !pod.pod.name().empty(), "a pod has a uid and a name");
  RequireSendable(pod.pod);
}

void RequireGood(const NodeObject& node) {
  Require(!node.uid().empty() && !node.key().empty(), "a node has a uid and a name");
  RequireSendable(node.node);
}

void RequireGood(const NamespaceObject& ns) {
  Require(!ns.uid().empty() && !ns.key().empty(), "a namespace has a uid and a name");
  RequireSendable(ns.ns);
}

}  // namespace

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
  // Objects are also tried on their own, so that a damaged frame does not hide them.
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

void FuzzManifest(absl::string_view input) {
  if (input.size() > 1 << 20) return;
  const absl::StatusOr<Manifests> manifests = ReadManifests("f", SeedBytes(input));
  if (!manifests.ok()) {
    Require(absl::StartsWith(manifests.status().message(), "f:"), "an error names its file");
    const absl::string_view message = manifests.status().message();
    Require(Utf8Prefix(message) == message.size(), "an error is UTF-8");
    return;
  }
  for (const PodPtr& pod : manifests->pods) RequireGood(*pod);
  for (const NodePtr& node : manifests->nodes) RequireGood(*node);
  for (const NamespacePtr& ns : manifests->namespaces) RequireGood(*ns);
}

}  // namespace outboard::kube
