#include "shim/cache/host_fields.h"

#include <iterator>
#include <utility>

#include "google/protobuf/repeated_field.h"

namespace outboard::cache {
namespace {

template <typename Map>
void KeepOnly(Map* annotations, const absl::flat_hash_set<std::string>& keys) {
  for (auto it = annotations->begin(); it != annotations->end();) {
    it = keys.contains(it->first) ? std::next(it) : annotations->erase(it);
  }
}

void KeepOnly(const HostFields& fields, v1beta1::Container* container) {
  if (!fields.command) container->clear_command();
  if (!fields.args) container->clear_args();
  if (!container->env().empty()) KeepOnly(container->mutable_env(), fields.variables);
}

void StripUndeclared(const HostFields& fields, v1beta1::Pod* pod) {
  KeepOnly(pod->mutable_annotations(), fields.pod_annotations);
  for (auto* containers : {pod->mutable_containers(), pod->mutable_init_containers()}) {
    for (v1beta1::Container& container : *containers) KeepOnly(fields, &container);
  }
}

}  // namespace

void HostFields::Add(const HostFields& other) {
  const auto add = [](const auto& from, auto* to) { to->insert(from.begin(), from.end()); };
  add(other.pod_annotations, &pod_annotations);
  add(other.node_annotations, &node_annotations);
  command |= other.command;
  args |= other.args;
  add(other.variables, &variables);
  resource_version |= other.resource_version;
  service_account_name |= other.service_account_name;
  priority_class_name |= other.priority_class_name;
  runtime_class_name |= other.runtime_class_name;
  phase |= other.phase;
  add(other.pod_conditions, &pod_conditions);
  capacity |= other.capacity;
  node_conditions |= other.node_conditions;
  addresses |= other.addresses;
  add(other.custom_resources, &custom_resources);
}

v1beta1::Pod DeclaredOnRequest(const kube::PodObject& pod, const HostFields& fields) {
  v1beta1::Pod part;
  // The shim wrote these bytes itself; they are valid.
  if (!fields.AnyOnRequest(pod) || !part.ParseFromString(pod.on_request)) return v1beta1::Pod();
  if (!fields.service_account_name) part.clear_service_account_name();
  if (!fields.priority_class_name) part.clear_priority_class_name();
  if (!fields.runtime_class_name) part.clear_runtime_class_name();
  if (!fields.phase) part.clear_phase();
  google::protobuf::RepeatedPtrField<v1beta1::Condition> conditions;
  for (v1beta1::Condition& condition : *part.mutable_conditions()) {
    if (fields.pod_conditions.contains(condition.type())) conditions.Add(std::move(condition));
  }
  part.mutable_conditions()->Swap(&conditions);
  return part;
}

v1beta1::Node DeclaredOnRequest(const kube::NodeObject& node, const HostFields& fields) {
  v1beta1::Node part;
  if (!fields.AnyOnRequest(node) || !part.ParseFromString(node.on_request)) return v1beta1::Node();
  if (!fields.capacity) part.clear_capacity();
  if (!fields.node_conditions) part.clear_conditions();
  if (!fields.addresses) part.clear_addresses();
  return part;
}

void CopyPod(const kube::PodObject& pod, const HostFields& fields, v1beta1::Pod* out) {
  *out = pod.pod;
  StripUndeclared(fields, out);
  if (fields.resource_version) out->set_resource_version(pod.resource_version);
  if (fields.AnyOnRequest(pod)) out->MergeFrom(DeclaredOnRequest(pod, fields));
}

void CopyNode(const kube::NodeObject& node, const HostFields& fields, v1beta1::Node* out) {
  *out = node.node;
  KeepOnly(out->mutable_annotations(), fields.node_annotations);
  if (fields.AnyOnRequest(node)) out->MergeFrom(DeclaredOnRequest(node, fields));
}

}  // namespace outboard::cache
