#include "shim/kube/testing/fake_api_encoding.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "google/protobuf/empty.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"
#include "shim/kube/wire/object_kinds.h"
#include "shim/kube/wire/runtime.pb.h"

namespace outboard::kube::testing {
namespace {

using nlohmann::json;

// Takes the place of kNotAQuantity, which JSON is checked for, until the message is bytes.
constexpr absl::string_view kQuantity = "1234567890";
static_assert(kQuantity.size() == kNotAQuantity.size());

std::string Bytes(const json& object, google::protobuf::Message* message) {
  const std::string text = absl::StrReplaceAll(object.dump(), {{kNotAQuantity, kQuantity}});
  auto document = ParseJson("fake", text);
  CHECK(document.ok()) << document.status();
  absl::Status filled = FillFromJson(*document, message);
  CHECK(filled.ok()) << filled << object.dump();
  return absl::StrReplaceAll(message->SerializeAsString(), {{kQuantity, kNotAQuantity}});
}

// SealEnvelope for a message that is bytes already.
std::string SealBytes(const std::string& api_version, const std::string& kind, std::string raw) {
  wire::Unknown envelope;
  envelope.mutable_typemeta()->set_apiversion(api_version);
  envelope.mutable_typemeta()->set_kind(kind);
  envelope.set_raw(std::move(raw));
  return absl::StrCat(absl::string_view("k8s\0", 4), envelope.SerializeAsString());
}

template <typename Message>
std::string Seal(const json& object) {
  Message message;
  return SealBytes(object.value("apiVersion", "v1"), object.value("kind", ""),
                   Bytes(object, &message));
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
    return SealBytes(object.value("apiVersion", "v1"), kind, Bytes(object, message.get()));
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
