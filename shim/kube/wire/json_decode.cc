#include "shim/kube/wire/json_decode.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/from_wire.h"
#include "shim/kube/wire/from_wire_parts.h"
#include "shim/kube/wire/object_filler.h"

namespace outboard::kube {
namespace {

template <typename Message, typename Convert>
auto DecodeObject(const DocNode& doc, Convert convert)
    -> decltype(convert(std::declval<Message>())) {
  Message message;
  if (absl::Status status = FillFromJson(doc, &message); !status.ok()) return status;
  return convert(message);
}

template <typename Convert>
auto DecodeText(absl::string_view json, Convert convert)
    -> decltype(convert(std::declval<DocNode>())) {
  absl::StatusOr<DocNode> doc = ParseJson("JSON", json);
  if (!doc.ok()) return doc.status();
  return convert(*doc);
}

template <typename Object, typename Decode>
absl::StatusOr<ListPage<Object>> DecodeList(const DocNode& doc, Decode decode) {
  if (doc.kind != DocNode::Kind::kMap)
    return absl::InvalidArgumentError("a list must be an object");
  ListPage<Object> page;
  if (const DocNode* metadata = doc.Find("metadata")) {
    wire::ListMeta meta;
    if (absl::Status status = FillFromJson(*metadata, &meta); !status.ok()) return status;
    page.resource_version = meta.resourceversion();
    page.continue_token = meta.continue_();
    page.remaining_items = meta.remainingitemcount();
  }
  const DocNode* items = doc.Find("items");
  if (items == nullptr || items->is_null()) return page;
  if (items->kind != DocNode::Kind::kList)
    return absl::InvalidArgumentError("items: must be a list");
  for (size_t i = 0; i < items->items.size(); ++i) {
    auto object = decode(items->items[i]);
    if (object.ok()) {
      page.items.push_back(*std::move(object));
    } else {
      page.rejected.push_back({ReadIdentityJson(items->items[i]),
                               absl::StrCat("items[", i, "]: ", object.status().message())});
    }
  }
  return page;
}

}  // namespace

ObjectIdentity ReadIdentityJson(const DocNode& doc) {
  ObjectIdentity identity;
  const DocNode* const metadata = doc.Find("metadata");
  if (metadata == nullptr) return identity;
  identity.name_space = std::string(metadata->FindString("namespace"));
  identity.name = std::string(metadata->FindString("name"));
  identity.uid = std::string(metadata->FindString("uid"));
  identity.resource_version = std::string(metadata->FindString("resourceVersion"));
  return identity;
}

absl::Status FillFromJson(const DocNode& doc, google::protobuf::Message* out) {
  ObjectFiller filler(nullptr);
  if (std::optional<Fault> fault = filler.Fill(doc, out))
    return absl::InvalidArgumentError(fault->ToString());
  return absl::OkStatus();
}

absl::StatusOr<PodPtr> DecodePodJson(const DocNode& doc) {
  return DecodeObject<wire::Pod>(doc, PodFromWire);
}

absl::StatusOr<NodePtr> DecodeNodeJson(const DocNode& doc) {
  return DecodeObject<wire::Node>(doc, NodeFromWire);
}

absl::StatusOr<NamespacePtr> DecodeNamespaceJson(const DocNode& doc) {
  return DecodeObject<wire::Namespace>(doc, NamespaceFromWire);
}

absl::StatusOr<PodPtr> DecodePodJson(absl::string_view json) {
  return DecodeText(json, [](const DocNode& doc) { return DecodePodJson(doc); });
}

absl::StatusOr<NodePtr> DecodeNodeJson(absl::string_view json) {
  return DecodeText(json, [](const DocNode& doc) { return DecodeNodeJson(doc); });
}

absl::StatusOr<NamespacePtr> DecodeNamespaceJson(absl::string_view json) {
  return DecodeText(json, [](const DocNode& doc) { return DecodeNamespaceJson(doc); });
}

absl::StatusOr<ListPage<PodObject>> DecodePodListJson(const DocNode& doc) {
  return DecodeList<PodObject>(doc, [](const DocNode& item) { return DecodePodJson(item); });
}

absl::StatusOr<ListPage<NodeObject>> DecodeNodeListJson(const DocNode& doc) {
  return DecodeList<NodeObject>(doc, [](const DocNode& item) { return DecodeNodeJson(item); });
}

absl::StatusOr<ListPage<NamespaceObject>> DecodeNamespaceListJson(const DocNode& doc) {
  return DecodeList<NamespaceObject>(doc,
                                     [](const DocNode& item) { return DecodeNamespaceJson(item); });
}

absl::StatusOr<ClusterObjectPtr> DecodeObjectJson(const ObjectKind& kind, const DocNode& doc) {
  std::unique_ptr<google::protobuf::Message> message(kind.prototype().New());
  if (absl::Status status = FillFromJson(doc, message.get()); !status.ok()) return status;
  return kind.from_wire(*message);
}

absl::StatusOr<ListPage<ClusterObject>> DecodeObjectListJson(const ObjectKind& kind,
                                                             const DocNode& doc) {
  return DecodeList<ClusterObject>(
      doc, [&](const DocNode& item) { return DecodeObjectJson(kind, item); });
}

absl::StatusOr<ClusterObjectPtr> DecodeCustomObject(const std::string& resource,
                                                    const DocNode& doc) {
  wire::ObjectMeta meta;
  if (const DocNode* const metadata = doc.Find("metadata"); metadata != nullptr) {
    if (absl::Status status = FillFromJson(*metadata, &meta); !status.ok()) return status;
  }
  if (meta.name().empty() || meta.uid().empty())
    return absl::InvalidArgumentError("an object without metadata.name or metadata.uid");
  auto object = std::make_shared<ClusterObject>();
  v1beta1::GenericObject& custom = *object->object.mutable_generic_object();
  custom.set_resource(resource);
  CopyText(meta.namespace_(), custom.mutable_namespace_());
  CopyText(meta.name(), custom.mutable_name());
  CopyText(meta.uid(), custom.mutable_uid());
  CopyText(meta.resourceversion(), custom.mutable_resource_version());
  custom.set_deleting(meta.has_deletiontimestamp());
  custom.set_json(ObjectJson(doc));
  object->object_uid = custom.uid();
  object->resource_version = custom.resource_version();
  return object;
}

absl::StatusOr<ListPage<ClusterObject>> DecodeObjectListJson(
    const std::function<absl::StatusOr<ClusterObjectPtr>(const DocNode&)>& decode,
    const DocNode& doc) {
  return DecodeList<ClusterObject>(doc, decode);
}

absl::StatusOr<ApiStatus> DecodeStatusJson(const DocNode& doc) {
  wire::Status status;
  if (absl::Status filled = FillFromJson(doc, &status); !filled.ok()) return filled;
  return StatusFromWire(status);
}

absl::StatusOr<Bookmark> DecodeBookmarkJson(const DocNode& doc) {
  wire::ObjectMeta meta;
  if (const DocNode* metadata = doc.Find("metadata")) {
    if (absl::Status status = FillFromJson(*metadata, &meta); !status.ok()) return status;
  }
  if (meta.resourceversion().empty())
    return absl::InvalidArgumentError("bookmark without resourceVersion");
  return BookmarkFromWire(meta);
}

absl::StatusOr<JsonWatchFrame> DecodeWatchFrameJson(const DocNode& event) {
  absl::StatusOr<WatchEventType> type = ParseWatchEventType(event.FindString("type"));
  if (!type.ok()) return type.status();
  const DocNode* object = event.Find("object");
  if (object == nullptr || object->kind != DocNode::Kind::kMap) {
    return absl::InvalidArgumentError("watch event without an object");
  }
  return JsonWatchFrame{*type, object};
}

}  // namespace outboard::kube
