// Decodes the API server's protobuf bodies to objects.
//
// A unary body is an envelope (magic bytes and runtime.Unknown) around an object or list. A watch
// frame is a bare WatchEvent whose object is such an envelope. Typical use:
//
//   Decoder decoder;
//   absl::StatusOr<Envelope> body = OpenEnvelope(response);
//   // body->kind is "PodList" or "Status".
//   absl::StatusOr<ListPage<PodObject>> page = decoder.DecodePodList(body->raw);
//
//   // A frame excludes the 4 bytes of length.
//   absl::StatusOr<WatchFrame> frame = DecodeWatchFrame(frame_bytes);
//   absl::StatusOr<PodPtr> pod = decoder.DecodePod(frame->object.raw);
//
// Input is not trusted: every length is checked against the available bytes, nesting and object
// size are bounded, and views into the input never outlive it.
//
// Threading: free functions are pure. A Decoder is for one thread at a time: it reuses messages.
// Lifetime: views point into the caller's bytes. Objects own their content.
// Errors: InvalidArgument for another encoding or object than expected.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_DECODE_H_
#define OUTBOARD_SHIM_KUBE_WIRE_DECODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/meta_v1.pb.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube {

// The largest object that is decoded. etcd stores at most 1.5 MiB by default.
inline constexpr size_t kMaxObjectBytes = size_t{16} << 20;

struct Envelope {
  absl::string_view api_version;
  absl::string_view kind;
  absl::string_view raw;
};

// Opens `body`. The envelope's content must be unencoded protobuf.
absl::StatusOr<Envelope> OpenEnvelope(absl::string_view body);

// The reverse, for protobuf request bodies.
std::string SealEnvelope(absl::string_view api_version, absl::string_view kind,
                         const google::protobuf::MessageLite& object);

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

absl::StatusOr<WatchEventType> ParseWatchEventType(absl::string_view text);

struct WatchFrame {
  WatchEventType type = WatchEventType::kError;
  Envelope object;  // for kError: a Status
};

absl::StatusOr<WatchFrame> DecodeWatchFrame(absl::string_view frame);

// The content of a BOOKMARK event.
struct Bookmark {
  std::string resource_version;
  // All events of the state at the start of the watch have been sent.
  bool initial_events_end = false;
};

struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;
};

// metav1.Status: an error (or a success without an object).
struct ApiStatus {
  std::string status;  // "Success" or "Failure"
  int code = 0;        // as in HTTP
  std::string reason;  // "Expired", "Conflict", …
  std::string message;
  int retry_after_seconds = 0;
  std::vector<StatusCause> causes;
};

// As much as could be read of the metadata of an object that could not be decoded. A field that
// could not be read is empty.
struct ObjectIdentity {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;

  // namespace/name; "" if the name is unknown.
  std::string key() const;
};

// An object that could not be decoded.
struct RejectedObject {
  ObjectIdentity identity;
  std::string why;
};

template <typename Object>
struct ListPage {
  std::vector<std::shared_ptr<const Object>> items;
  // Items that could not be decoded. They are omitted; the rest of the list is valid.
  std::vector<RejectedObject> rejected;
  std::string resource_version;
  std::string continue_token;
  int64_t remaining_items = 0;
};

// Parses one object of any wire type, within bounds. Clears `out` first.
absl::Status ParseObject(absl::string_view raw, google::protobuf::MessageLite* out);

// Reads the metadata of an object of any kind, as far as it can be read.
ObjectIdentity ReadIdentity(absl::string_view raw);

// Converts the parsed message. Shared with the JSON decoder.
ApiStatus StatusFromWire(const wire::Status& status);
Bookmark BookmarkFromWire(const wire::ObjectMeta& meta);

class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  absl::StatusOr<PodPtr> DecodePod(absl::string_view raw);
  absl::StatusOr<NodePtr> DecodeNode(absl::string_view raw);
  absl::StatusOr<NamespacePtr> DecodeNamespace(absl::string_view raw);

  absl::StatusOr<ListPage<PodObject>> DecodePodList(absl::string_view raw);
  absl::StatusOr<ListPage<NodeObject>> DecodeNodeList(absl::string_view raw);
  absl::StatusOr<ListPage<NamespaceObject>> DecodeNamespaceList(absl::string_view raw);

  // An object or list of one of the kinds in object_kinds.h.
  absl::StatusOr<ClusterObjectPtr> DecodeObject(const ObjectKind& kind, absl::string_view raw);
  absl::StatusOr<ListPage<ClusterObject>> DecodeObjectList(const ObjectKind& kind,
                                                           absl::string_view raw);

  // `raw` is an object of any kind. Only its metadata is read.
  absl::StatusOr<Bookmark> DecodeBookmark(absl::string_view raw);
  absl::StatusOr<ApiStatus> DecodeStatus(absl::string_view raw);

 private:
  wire::Pod pod_;
  wire::Node node_;
  wire::Namespace namespace_;
  // A message of the kind that was decoded last.
  std::unique_ptr<google::protobuf::Message> object_;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_DECODE_H_
