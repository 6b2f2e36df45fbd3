#include "shim/kube/testing/fake_api_encoding.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>

#include "absl/strings/strip.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"
#include "shim/kube/wire/object_kinds.h"

namespace outboard::kube::testing {
namespace {

using nlohmann::json;

std::string Bytes(const json& object, google::protobuf::Message* message) {
  auto document = ParseJson("fake", object.dump());
  CHECK(document.ok()) << document.status();
  absl::Status filled = FillFromJson(*document, message);
  CHECK(filled.ok()) << filled << object.dump();
  return message->SerializeAsString();
}

template <typename Message>
std::string Seal(const json& object) {
  Message message;
  Bytes(object, &message);
  return SealEnvelope(object.value("apiVersion", "v1"), object.value("kind", ""), message);
}

// For any kind of object_kinds.h; null for others.
std::unique_ptr<google::protobuf::Message> NewMessage(const std::string& kind) {
  for (const ObjectKind& known : ObjectKinds()) {
    if (known.kind == kind)
      return std::unique_ptr<google::protobuf::Message>(known.prototype().New());
  }
  return nullptr;
}

// Lists have no wire message of their own: field 1 is the metadata, field 2 an item.
std::string SealList(const json& list, const std::string& item_kind) {
  google::protobuf::Empty message;
  google::protobuf::UnknownFieldSet* fields =
      message.GetReflection()->MutableUnknownFields(&message);
  wire::ListMeta meta;
  fields->AddLengthDelimited(1, Bytes(list.at("metadata"), &meta));
  for (const json& item : list.at("items")) {
    fields->AddLengthDelimited(2, Bytes(item, NewMessage(item_kind).get()));
  }
  return SealEnvelope(list.value("apiVersion", "v1"), list.value("kind", ""), message);
}

}  // namespace

std::string ToProtobuf(const json& object) {
  const std::string kind = object.value("kind", "");
  if (kind == "Pod") return Seal<wire::Pod>(object);
  if (kind == "Node") return Seal<wire::Node>(object);
  if (kind == "Namespace") return Seal<wire::Namespace>(object);
  if (kind == "PodList") return Seal<wire::PodList>(object);
  if (kind == "NodeList") return Seal<wire::NodeList>(object);
  if (kind == "NamespaceList") return Seal<wire::NamespaceList>(object);
  if (kind == "Status") return Seal<wire::Status>(object);
  if (auto message = NewMessage(kind)) {
    Bytes(object, message.get());
    return SealEnvelope(object.value("apiVersion", "v1"), kind, *message);
  }
  const std::string item_kind(absl::StripSuffix(kind, "List"));
  if (item_kind == kind || NewMessage(item_kind) == nullptr) return "";
  return SealList(object, item_kind);
}

bool HasProtobuf(const std::string& resource) {
  if (resource == "pods" || resource == "nodes" || resource == "namespaces") return true;
  const auto kinds = ObjectKinds();
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const ObjectKind& kind) { return kind.resource == resource; });
}

std::string ProtobufFrame(const std::string& type, const json& object) {
  wire::WatchEvent event;
  event.set_type(type);
  event.mutable_object()->set_raw(ToProtobuf(object));
  const std::string bytes = event.SerializeAsString();
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame.push_back(static_cast<char>((bytes.size() >> shift) & 0xff));
  }
  return frame + bytes;
}

std::string JsonFrame(const std::string& type, const json& object) {
  return json({{"type", type}, {"object", object}}).dump() + "\n";
}

}  // namespace outboard::kube::testing
