#include "shim/kube/wire/testing/fuzz_targets.h"

#include <limits>

#include "google/protobuf/stubs/logging.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"
#include "shim/kube/wire/object_kinds.h"
#include "shim/kube/wire/quantity.h"
#include "shim/kube/wire/testing/promises.h"

namespace outboard::kube {
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

void FuzzWatchFrame(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;  // of lines about invalid UTF-8
  const absl::StatusOr<WatchFrame> frame = DecodeWatchFrame(bytes);
  // Also decode objects alone, so that a damaged frame does not hide them.
  const absl::string_view raw = frame.ok() ? frame->object.raw : bytes;
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

namespace {

// A decoded object has the identity of its metadata, and can be sent to hosts.
template <typename Object>
void RequireObject(const absl::StatusOr<std::shared_ptr<const Object>>& object,
                   const ObjectIdentity& identity) {
  if (!object.ok()) return;
  RequireGood(**object);
  Require((*object)->uid() == identity.uid, "both readings find the same uid");
  Require((*object)->resource_version == identity.resource_version,
          "both readings find the same version");
}

template <typename Object>
void RequireList(const absl::StatusOr<ListPage<Object>>& page) {
  if (!page.ok()) return;
  for (const auto& object : page->items) RequireGood(*object);
  for (const RejectedObject& rejected : page->rejected)
    Require(!rejected.why.empty(), "a rejected item has a reason");
}

void FuzzProtobuf(absl::string_view bytes) {
  Decoder decoder;
  const ObjectIdentity identity = ReadIdentity(bytes);
  RequireObject(decoder.DecodePod(bytes), identity);
  RequireObject(decoder.DecodeNode(bytes), identity);
  RequireObject(decoder.DecodeNamespace(bytes), identity);
  RequireList(decoder.DecodePodList(bytes));
  RequireList(decoder.DecodeNodeList(bytes));
  RequireList(decoder.DecodeNamespaceList(bytes));
  for (const ObjectKind& kind : ObjectKinds()) {
    RequireObject(decoder.DecodeObject(kind, bytes), identity);
    RequireList(decoder.DecodeObjectList(kind, bytes));
  }
}

void FuzzJson(absl::string_view bytes) {
  const absl::StatusOr<DocNode> document = ParseJson("fuzz", bytes);
  if (!document.ok()) return;
  const ObjectIdentity identity = ReadIdentityJson(*document);
  RequireObject(DecodePodJson(*document), identity);
  RequireObject(DecodeNodeJson(*document), identity);
  RequireObject(DecodeNamespaceJson(*document), identity);
  RequireList(DecodePodListJson(*document));
  RequireList(DecodeNodeListJson(*document));
  RequireList(DecodeNamespaceListJson(*document));
  for (const ObjectKind& kind : ObjectKinds()) {
    RequireObject(DecodeObjectJson(kind, *document), identity);
    RequireList(DecodeObjectListJson(kind, *document));
  }
  RequireObject(DecodeCustomObject("jobs.v1.example.com", *document), identity);
  (void)DecodeStatusJson(*document);
  (void)DecodeBookmarkJson(*document);
  (void)DecodeWatchFrameJson(*document);
}

}  // namespace

void FuzzObject(absl::string_view bytes) {
  const google::protobuf::LogSilencer silencer;
  FuzzProtobuf(bytes);
  FuzzJson(bytes);
}

}  // namespace outboard::kube
