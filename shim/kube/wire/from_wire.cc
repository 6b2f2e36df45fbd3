#include "shim/kube/wire/from_wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "shim/kube/wire/from_wire_parts.h"

namespace outboard::kube {

namespace api = ::outboard::v1beta1;

namespace {

// See NodeObject::on_request.
absl::Status ConvertOnRequest(const wire::NodeStatus& status, std::string* bytes) {
  // Reused: most updates of nodes are heartbeats.
  thread_local api::Node part;
  part.Clear();
  if (!status.capacity().empty()) {
    absl::Status done =
        ConvertResources("status.capacity", status.capacity(), part.mutable_capacity());
    if (!done.ok()) return done;
  }
  for (const wire::NodeCondition& condition : status.conditions())
    ConvertCondition(condition, part.add_conditions());
  for (const wire::NodeAddress& address : status.addresses()) {
    api::NodeAddress* out = part.add_addresses();
    CopyText(address.type(), out->mutable_type());
    CopyText(address.address(), out->mutable_address());
  }
  *bytes = part.SerializeAsString();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NodePtr> NodeFromWire(const wire::Node& from) {
  const wire::ObjectMeta& meta = from.metadata();
  if (absl::Status status = CheckIdentity(meta); !status.ok()) return Named("node", meta, status);
  auto object = std::make_shared<NodeObject>();
  object->resource_version = meta.resourceversion();
  api::Node* node = &object->node;
  CopyText(meta.uid(), node->mutable_uid());
  CopyText(meta.name(), node->mutable_name());
  CopyTexts(meta.labels(), node->mutable_labels());
  CopyAnnotations(meta.annotations(), node->mutable_annotations());
  node->set_creation_unix_seconds(meta.creationtimestamp().seconds());
  node->set_unschedulable(from.spec().unschedulable());
  for (const wire::Taint& taint : from.spec().taints()) {
    api::Taint* out = node->add_taints();
    CopyText(taint.key(), out->mutable_key());
    CopyText(taint.value(), out->mutable_value());
    out->set_effect(ConvertEffect(taint.effect()));
  }
  absl::Status status = ConvertResources("status.allocatable", from.status().allocatable(),
                                         node->mutable_allocatable());
  if (!status.ok()) return Named("node", meta, status);
  for (const wire::ContainerImage& image : from.status().images()) {
    api::ContainerImage* out = node->add_images();
    for (const std::string& name : image.names()) CopyText(name, out->add_names());
    out->set_size_bytes(image.sizebytes());
  }
  CopyTexts(from.status().declaredfeatures(), node->mutable_declared_features());
  std::sort(node->mutable_declared_features()->begin(), node->mutable_declared_features()->end());
  for (const wire::NodeCondition& condition : from.status().conditions()) {
    if (!object->conditions.empty()) object->conditions += ',';
    absl::StrAppend(&object->conditions, condition.type(), "=", condition.status());
  }
  status = ConvertOnRequest(from.status(), &object->on_request);
  if (!status.ok()) return Named("node", meta, status);
  return object;
}

absl::StatusOr<NamespacePtr> NamespaceFromWire(const wire::Namespace& from) {
  const wire::ObjectMeta& meta = from.metadata();
  if (absl::Status status = CheckIdentity(meta); !status.ok())
    return Named("namespace", meta, status);
  auto object = std::make_shared<NamespaceObject>();
  object->resource_version = meta.resourceversion();
  object->object_uid = meta.uid();
  CopyText(meta.name(), object->ns.mutable_name());
  CopyTexts(meta.labels(), object->ns.mutable_labels());
  return object;
}

}  // namespace outboard::kube
