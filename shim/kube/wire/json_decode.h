// Decodes the API server's JSON bodies to objects: the client's fallback if protobuf is not served.
//
// Produces the same objects as decode.h. A body is parsed once, then read according to its kind:
//
//   absl::StatusOr<DocNode> body = ParseJson("GET /api/v1/pods", response);
//   // body->FindString("kind") is "PodList" (DecodePodListJson) or "Status" (DecodeStatusJson).
//
//   // *event is {"type":"ADDED","object":{…}}.
//   absl::StatusOr<JsonWatchFrame> frame = DecodeWatchFrameJson(*event);
//   absl::StatusOr<PodPtr> pod = DecodePodJson(*frame->object);
//
// Threading: pure functions.
// Lifetime: JsonWatchFrame points into the document.
// Errors: InvalidArgument with the field.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_JSON_DECODE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_JSON_DECODE_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube {

// For any wire message, such as wire::Lease. Ignores unknown fields.
absl::Status FillFromJson(const DocNode& doc, google::protobuf::Message* out);

absl::StatusOr<PodPtr> DecodePodJson(const DocNode& doc);
absl::StatusOr<NodePtr> DecodeNodeJson(const DocNode& doc);
absl::StatusOr<NamespacePtr> DecodeNamespaceJson(const DocNode& doc);
absl::StatusOr<PodPtr> DecodePodJson(absl::string_view json);
absl::StatusOr<NodePtr> DecodeNodeJson(absl::string_view json);
absl::StatusOr<NamespacePtr> DecodeNamespaceJson(absl::string_view json);

absl::StatusOr<ListPage<PodObject>> DecodePodListJson(const DocNode& doc);
absl::StatusOr<ListPage<NodeObject>> DecodeNodeListJson(const DocNode& doc);
absl::StatusOr<ListPage<NamespaceObject>> DecodeNamespaceListJson(const DocNode& doc);

// An object or list of one of the kinds in object_kinds.h.
absl::StatusOr<ClusterObjectPtr> DecodeObjectJson(const ObjectKind& kind, const DocNode& doc);
absl::StatusOr<ListPage<ClusterObject>> DecodeObjectListJson(const ObjectKind& kind,
                                                             const DocNode& doc);

// An object of a custom resource, `RESOURCE.VERSION.GROUP`; without managedFields.
absl::StatusOr<ClusterObjectPtr> DecodeCustomObject(const std::string& resource,
                                                    const DocNode& doc);
// A list whose items `decode` reads.
absl::StatusOr<ListPage<ClusterObject>> DecodeObjectListJson(
    const std::function<absl::StatusOr<ClusterObjectPtr>(const DocNode&)>& decode,
    const DocNode& doc);

// Reads the metadata of an object of any kind, as far as it can be read.
ObjectIdentity ReadIdentityJson(const DocNode& doc);

absl::StatusOr<ApiStatus> DecodeStatusJson(const DocNode& doc);
absl::StatusOr<Bookmark> DecodeBookmarkJson(const DocNode& doc);

struct JsonWatchFrame {
  WatchEventType type = WatchEventType::kError;
  const DocNode* object = nullptr;
};

absl::StatusOr<JsonWatchFrame> DecodeWatchFrameJson(const DocNode& event);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_JSON_DECODE_H_
