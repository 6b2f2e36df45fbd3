#include "shim/kube/wire/decode.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shim/kube/wire/from_wire.h"
#include "shim/kube/wire/runtime.pb.h"
#include "shim/kube/wire/utf8.h"

namespace outboard::kube {
namespace {

constexpr absl::string_view kMagic("k8s\0", 4);
constexpr absl::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
constexpr absl::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

absl::Status Broken(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("not a Kubernetes protobuf message: ", what));
}

// Iterates over the top-level fields of a message without copying: envelopes and lists may have
// hundreds of megabytes.
class FieldWalker {
 public:
  explicit FieldWalker(absl::string_view bytes) : rest_(bytes) {}

  // Advances to the next field. False at the end, and for invalid bytes (then ok() is false too).
  bool Next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!ReadVarint(&tag) || tag >> 3 == 0 || tag >> 32 != 0) return Fail();
    field_ = static_cast<uint32_t>(tag >> 3);
    bytes_ = {};
    has_bytes_ = false;
    uint64_t number = 0;
    switch (tag & 7) {
      case 0:
        return ReadVarint(&number) || Fail();
      case 1:
        return Skip(8);
      case 2:
        if (!ReadVarint(&number) || number > rest_.size()) return Fail();
        bytes_ = rest_.substr(0, number);
        has_bytes_ = true;
        rest_.remove_prefix(number);
        return true;
      case 5:
        return Skip(4);
      default:
        return Fail();  // Kubernetes does not use groups.
    }
  }

  bool ok() const { return ok_; }
  uint32_t field() const { return field_; }
  // Whether this field is a string or message with this number.
  bool Is(uint32_t field) const { return field_ == field && has_bytes_; }
  absl::string_view bytes() const { return bytes_; }

 private:
  bool Fail() {
    ok_ = false;
    return false;
  }
  bool Skip(size_t count) {
    if (rest_.size() < count) return Fail();
    rest_.remove_prefix(count);
    return true;
  }
  bool ReadVarint(uint64_t* out) {
    *out = 0;
    for (size_t i = 0; i < 10 && i < rest_.size(); ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      *out |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        return true;
      }
    }
    return false;
  }

  absl::string_view rest_;
  absl::string_view bytes_;
  uint32_t field_ = 0;
  bool has_bytes_ = false;
  bool ok_ = true;
};

// Adds the index of the failed item. The item's own message names the object if possible.
template <typename Object, typename Decode>
absl::StatusOr<ListPage<Object>> DecodeList(absl::string_view raw, Decode decode) {
  ListPage<Object> page;
  wire::ListMeta meta;
  size_t index = 0;
  FieldWalker fields(raw);
  while (fields.Next()) {
    if (fields.Is(wire::PodList::kMetadataFieldNumber)) {
      if (absl::Status status = ParseObject(fields.bytes(), &meta); !status.ok()) return status;
      page.resource_version = meta.resourceversion();
      page.continue_token = meta.continue_();
      page.remaining_items = meta.remainingitemcount();
    } else if (fields.Is(wire::PodList::kItemsFieldNumber)) {
      auto object = decode(fields.bytes());
      if (object.ok()) {
        page.items.push_back(*std::move(object));
      } else {
        page.rejected.push_back({ReadIdentity(fields.bytes()),
                                 absl::StrCat("items[", index, "]: ", object.status().message())});
      }
      ++index;
    }
  }
  if (!fields.ok()) return Broken("list");
  return page;
}

}  // namespace

absl::StatusOr<Envelope> OpenEnvelope(absl::string_view body) {
  if (!absl::ConsumePrefix(&body, kMagic)) return Broken("no magic bytes at the beginning");
  Envelope envelope;
  FieldWalker fields(body);
  while (fields.Next()) {
    if (fields.Is(wire::Unknown::kTypeMetaFieldNumber)) {
      FieldWalker type(fields.bytes());
      while (type.Next()) {
        if (type.Is(wire::TypeMeta::kApiVersionFieldNumber)) envelope.api_version = type.bytes();
        if (type.Is(wire::TypeMeta::kKindFieldNumber)) envelope.kind = type.bytes();
      }
      if (!type.ok()) return Broken("typeMeta");
    } else if (fields.Is(wire::Unknown::kRawFieldNumber)) {
      envelope.raw = fields.bytes();
    } else if (fields.Is(wire::Unknown::kContentEncodingFieldNumber) && !fields.bytes().empty()) {
      return Broken("the envelope's content is encoded");
    } else if (fields.Is(wire::Unknown::kContentTypeFieldNumber) && !fields.bytes().empty() &&
               fields.bytes() != kProtobuf) {
      return Broken("the envelope's content is not protobuf");
    }
  }
  if (!fields.ok()) return Broken("envelope");
  return envelope;
}

std::string SealEnvelope(absl::string_view api_version, absl::string_view kind,
                         const google::protobuf::MessageLite& object) {
  wire::Unknown envelope;
  envelope.mutable_typemeta()->set_apiversion(std::string(api_version));
  envelope.mutable_typemeta()->set_kind(std::string(kind));
  envelope.set_raw(object.SerializeAsString());
  return absl::StrCat(kMagic, envelope.SerializeAsString());
}

absl::StatusOr<WatchEventType> ParseWatchEventType(absl::string_view text) {
  if (text == "ADDED") return WatchEventType::kAdded;
  if (text == "MODIFIED") return WatchEventType::kModified;
  if (text == "DELETED") return WatchEventType::kDeleted;
  if (text == "BOOKMARK") return WatchEventType::kBookmark;
  if (text == "ERROR") return WatchEventType::kError;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown type of watch event: \"", ToUtf8(text.substr(0, 32)), "\""));
}

absl::StatusOr<WatchFrame> DecodeWatchFrame(absl::string_view frame) {
  absl::string_view type;
  absl::string_view object;
  FieldWalker fields(frame);
  while (fields.Next()) {
    if (fields.Is(wire::WatchEvent::kTypeFieldNumber)) type = fields.bytes();
    if (!fields.Is(wire::WatchEvent::kObjectFieldNumber)) continue;
    FieldWalker extension(fields.bytes());
    while (extension.Next()) {
      if (extension.Is(wire::RawExtension::kRawFieldNumber)) object = extension.bytes();
    }
    if (!extension.ok()) return Broken("object of a watch event");
  }
  if (!fields.ok()) return Broken("watch event");
  absl::StatusOr<WatchEventType> parsed = ParseWatchEventType(type);
  if (!parsed.ok()) return parsed.status();
  absl::StatusOr<Envelope> envelope = OpenEnvelope(object);
  if (!envelope.ok()) return envelope.status();
  return WatchFrame{*parsed, *envelope};
}

std::string ObjectIdentity::key() const {
  if (name.empty()) return "";
  return name_space.empty() ? name : absl::StrCat(name_space, "/", name);
}

ObjectIdentity ReadIdentity(absl::string_view raw) {
  ObjectIdentity identity;
  FieldWalker fields(raw);
  while (fields.Next()) {
    if (!fields.Is(wire::Pod::kMetadataFieldNumber)) continue;
    FieldWalker metadata(fields.bytes());
    while (metadata.Next()) {
      const auto read = [&](uint32_t field, std::string* out) {
        if (metadata.Is(field)) *out = ToUtf8(metadata.bytes());
      };
      read(wire::ObjectMeta::kNameFieldNumber, &identity.name);
      read(wire::ObjectMeta::kNamespaceFieldNumber, &identity.name_space);
      read(wire::ObjectMeta::kUidFieldNumber, &identity.uid);
      read(wire::ObjectMeta::kResourceVersionFieldNumber, &identity.resource_version);
    }
  }
  return identity;
}

absl::Status ParseObject(absl::string_view raw, google::protobuf::MessageLite* out) {
  if (raw.size() > kMaxObjectBytes) {
    return absl::InvalidArgumentError(absl::StrCat("an object of ", raw.size(), " bytes; at most ",
                                                   kMaxObjectBytes, " are accepted"));
  }
  if (!out->ParseFromArray(raw.data(), static_cast<int>(raw.size())))
    return Broken(out->GetTypeName());
  return absl::OkStatus();
}

ApiStatus StatusFromWire(const wire::Status& status) {
  ApiStatus out;
  out.status = ToUtf8(status.status());
  out.code = status.code();
  out.reason = ToUtf8(status.reason());
  out.message = ToUtf8(status.message());
  out.retry_after_seconds = status.details().retryafterseconds();
  for (const wire::StatusCause& cause : status.details().causes()) {
    out.causes.push_back({ToUtf8(cause.reason()), ToUtf8(cause.message()), ToUtf8(cause.field())});
  }
  return out;
}

Bookmark BookmarkFromWire(const wire::ObjectMeta& meta) {
  Bookmark bookmark;
  bookmark.resource_version = meta.resourceversion();
  auto end = meta.annotations().find(std::string(kInitialEventsEnd));
  bookmark.initial_events_end = end != meta.annotations().end() && end->second == "true";
  return bookmark;
}

absl::StatusOr<PodPtr> Decoder::DecodePod(absl::string_view raw) {
  if (absl::Status status = ParseObject(raw, &pod_); !status.ok()) return status;
  return PodFromWire(pod_);
}

absl::StatusOr<NodePtr> Decoder::DecodeNode(absl::string_view raw) {
  if (absl::Status status = ParseObject(raw, &node_); !status.ok()) return status;
  return NodeFromWire(node_);
}

absl::StatusOr<NamespacePtr> Decoder::DecodeNamespace(absl::string_view raw) {
  if (absl::Status status = ParseObject(raw, &namespace_); !status.ok()) return status;
  return NamespaceFromWire(namespace_);
}

absl::StatusOr<ListPage<PodObject>> Decoder::DecodePodList(absl::string_view raw) {
  return DecodeList<PodObject>(raw, [this](absl::string_view item) { return DecodePod(item); });
}

absl::StatusOr<ListPage<NodeObject>> Decoder::DecodeNodeList(absl::string_view raw) {
  return DecodeList<NodeObject>(raw, [this](absl::string_view item) { return DecodeNode(item); });
}

absl::StatusOr<ListPage<NamespaceObject>> Decoder::DecodeNamespaceList(absl::string_view raw) {
  return DecodeList<NamespaceObject>(
      raw, [this](absl::string_view item) { return DecodeNamespace(item); });
}

absl::StatusOr<ClusterObjectPtr> Decoder::DecodeObject(const ObjectKind& kind,
                                                       absl::string_view raw) {
  const google::protobuf::Message& prototype = kind.prototype();
  if (object_ == nullptr || object_->GetDescriptor() != prototype.GetDescriptor()) {
    object_.reset(prototype.New());
  }
  if (absl::Status status = ParseObject(raw, object_.get()); !status.ok()) return status;
  return kind.from_wire(*object_);
}

absl::StatusOr<ListPage<ClusterObject>> Decoder::DecodeObjectList(const ObjectKind& kind,
                                                                  absl::string_view raw) {
  return DecodeList<ClusterObject>(
      raw, [&](absl::string_view item) { return DecodeObject(kind, item); });
}

absl::StatusOr<Bookmark> Decoder::DecodeBookmark(absl::string_view raw) {
  wire::ObjectMeta meta;
  FieldWalker fields(raw);
  while (fields.Next()) {
    if (!fields.Is(wire::Pod::kMetadataFieldNumber)) continue;
    if (absl::Status status = ParseObject(fields.bytes(), &meta); !status.ok()) return status;
  }
  if (!fields.ok()) return Broken("bookmark");
  if (meta.resourceversion().empty()) return Broken("bookmark without resourceVersion");
  return BookmarkFromWire(meta);
}

absl::StatusOr<ApiStatus> Decoder::DecodeStatus(absl::string_view raw) {
  wire::Status status;
  if (absl::Status parsed = ParseObject(raw, &status); !parsed.ok()) return parsed;
  return StatusFromWire(status);
}

}  // namespace outboard::kube
