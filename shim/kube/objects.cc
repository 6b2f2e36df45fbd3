#include "shim/kube/objects.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace outboard::kube {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The set field of the oneof in `object`; null: none.
const FieldDescriptor* HeldField(const v1beta1::ClusterObject& object) {
  static const auto* const kinds = v1beta1::ClusterObject::descriptor()->FindOneofByName("object");
  return object.GetReflection()->GetOneofFieldDescriptor(object, kinds);
}

// The string field `name` of `message`; empty without such a field.
std::string TextOf(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? "" : message.GetReflection()->GetString(message, field);
}

}  // namespace

std::string KindOf(const v1beta1::ClusterObject& object) {
  const FieldDescriptor* held = HeldField(object);
  if (held == nullptr) return "";
  if (object.has_pod_controller()) return object.pod_controller().kind();
  if (object.has_generic_object()) return object.generic_object().resource();
  // The contract's names follow C++ style, whereas Kubernetes writes CSI in capitals.
  const std::string& name = held->message_type()->name();
  return absl::StartsWith(name, "Csi") ? "CSI" + name.substr(3) : name;
}

std::string NamespacedName(const v1beta1::ClusterObject& object) {
  const FieldDescriptor* held = HeldField(object);
  if (held == nullptr) return "";
  const Message& message = object.GetReflection()->GetMessage(object, held);
  const bool namespaced = held->message_type()->FindFieldByName("namespace") != nullptr &&
                          !(object.has_generic_object() && TextOf(message, "namespace").empty());
  return (namespaced ? TextOf(message, "namespace") + "/" : "") + TextOf(message, "name");
}

v1beta1::ObjectReference ReferenceTo(const v1beta1::ClusterObject& object) {
  v1beta1::ObjectReference reference;
  const FieldDescriptor* held = HeldField(object);
  if (held == nullptr) return reference;
  const Message& message = object.GetReflection()->GetMessage(object, held);
  reference.set_kind(KindOf(object));
  reference.set_namespace_(TextOf(message, "namespace"));
  reference.set_name(TextOf(message, "name"));
  reference.set_uid(TextOf(message, "uid"));
  return reference;
}

std::string KeyOf(const v1beta1::ObjectReference& reference) {
  return absl::StrCat(reference.kind(), "/", reference.namespace_(),
                      reference.namespace_().empty() ? "" : "/", reference.name());
}

std::string ClusterObject::key() const { return NamespacedName(object); }

}  // namespace outboard::kube
