// Parts of a pod, by their paths in a manifest: the inputs of a plugin's answers.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_POD_PARTS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_POD_PARTS_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::sdk {

// An annotation's name in PluginDescriptor::needed_fields.
std::string AnnotationField(absl::string_view key);

// A set of parts. The paths are
// - metadata.name, metadata.namespace, metadata.uid, metadata.labels, metadata.labels['KEY'],
//   metadata.annotations['KEY'], metadata.ownerReferences, metadata.creationTimestamp;
// - metadata.name if metadata.labels['KEY'], metadata.name if metadata.annotations['KEY']: the
//   pod's identity, if it has that key;
// - spec.nodeName, spec.nodeSelector, spec.affinity, spec.tolerations,
//   spec.topologySpreadConstraints, spec.priority, spec.preemptionPolicy, spec.schedulingGates,
//   spec.schedulingGroup, spec.resourceClaims, spec.serviceAccountName, spec.priorityClassName,
//   spec.runtimeClassName, status.conditions;
// - spec.volumes, with the pod's name if a volume is ephemeral;
// - spec.containers: containers and init containers with all their fields of the contract,
//   pod-level requests, overhead, hostNetwork, and the resources in their status.
//
// Threading: a value.
// Lifetime: as the process.
// Errors: InvalidArgument for any other path.
class PodParts {
 public:
  static absl::StatusOr<PodParts> Parse(absl::Span<const std::string> paths);

  // Copies these parts from `from` to `to`; other parts are unchanged.
  void Copy(const v1beta1::Pod& from, v1beta1::Pod* to) const;
  void Add(const PodParts& others);

 private:
  std::set<const google::protobuf::FieldDescriptor*> fields_;  // of Pod
  bool volumes_ = false;
  // Keys whose pods are interchangeable with no other pod.
  std::set<std::string> naming_labels_;
  std::set<std::string> naming_annotations_;
  std::set<std::string> labels_;
  std::set<std::string> annotations_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_POD_PARTS_H_
