// Shared by the conversions from wire messages; for from_wire*.cc only.
//
// Threading: pure functions.
// Errors: InvalidArgument with the field's path.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_PARTS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_PARTS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/from_wire.h"

namespace outboard::kube {

using QuantityMap = google::protobuf::Map<std::string, wire::Quantity>;
using StringList = google::protobuf::RepeatedPtrField<std::string>;
using StringMap = google::protobuf::Map<std::string, std::string>;

template <typename Enum>
Enum UnknownEnum() {
  return static_cast<Enum>(kUnknownEnumValue);
}

// The API server validates the bytes of most texts, but not of all (schedulerName, annotations,
// images). Invalid UTF-8 is repaired.
void CopyText(const std::string& from, std::string* to);
void CopyTexts(const StringList& from, StringList* to);
void CopyTexts(const StringMap& from, StringMap* to);
// Omits annotations that no plugin may request.
void CopyAnnotations(const StringMap& from, StringMap* to);

// Canonical amounts; `path` is the path of the map.
absl::Status ConvertResources(absl::string_view path, const QuantityMap& from,
                              v1beta1::ResourceList* to);
void ConvertLabelSelector(const wire::LabelSelector& from, v1beta1::LabelSelector* to);
void ConvertNodeTerm(const wire::NodeSelectorTerm& from, v1beta1::NodeSelectorTerm* to);
void ConvertNodeSelector(const wire::NodeSelector& from, v1beta1::NodeSelector* to);
v1beta1::TaintEffect ConvertEffect(const std::string& text);
v1beta1::ConditionStatus ConvertConditionStatus(const std::string& text);

// For the conditions of nodes and pods.
template <typename WireCondition>
void ConvertCondition(const WireCondition& from, v1beta1::Condition* to) {
  CopyText(from.type(), to->mutable_type());
  to->set_status(ConvertConditionStatus(from.status()));
  CopyText(from.reason(), to->mutable_reason());
  to->set_transition_unix_seconds(from.lasttransitiontime().seconds());
}

// Copies the owner that is the controller into `controller`, if the object has that field.
template <typename Object>
void ConvertController(const wire::ObjectMeta& meta, Object* to) {
  for (const wire::OwnerReference& owner : meta.ownerreferences()) {
    if (!owner.controller()) continue;
    v1beta1::ControllerReference* out = to->mutable_controller();
    CopyText(owner.apiversion(), out->mutable_api_version());
    CopyText(owner.kind(), out->mutable_kind());
    CopyText(owner.name(), out->mutable_name());
    CopyText(owner.uid(), out->mutable_uid());
    return;
  }
}

// A new object of `kind` with uid and version, to be filled in.
absl::StatusOr<std::shared_ptr<ClusterObject>> NewClusterObject(absl::string_view kind,
                                                                const wire::ObjectMeta& meta);

// Checks the fields that every kind needs: name and uid. They and the version are UTF-8.
absl::Status CheckIdentity(const wire::ObjectMeta& meta);
// Prefixes `status` with the object's kind and name.
absl::Status Named(absl::string_view kind, const wire::ObjectMeta& meta,
                   const absl::Status& status);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_FROM_WIRE_PARTS_H_
