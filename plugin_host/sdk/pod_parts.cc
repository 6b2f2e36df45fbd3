#include "plugin_host/sdk/pod_parts.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"

namespace outboard::sdk {
namespace {

using google::protobuf::FieldDescriptor;
using v1beta1::Pod;

struct NamedPart {
  const char* path;
  std::vector<const char*> fields;
};

const std::vector<NamedPart>& NamedParts() {
  static const auto* const parts = new std::vector<NamedPart>{
      {"metadata.name", {"name"}},
      {"metadata.namespace", {"namespace"}},
      {"metadata.uid", {"uid"}},
      {"metadata.labels", {"labels"}},
      {"metadata.ownerReferences", {"controller"}},
      {"metadata.creationTimestamp", {"creation_unix_seconds"}},
      {"spec.nodeName", {"node_name"}},
      {"spec.nodeSelector", {"node_selector"}},
      {"spec.affinity", {"affinity"}},
      {"spec.tolerations", {"tolerations"}},
      {"spec.topologySpreadConstraints", {"topology_spread_constraints"}},
      {"spec.priority", {"priority"}},
      {"spec.preemptionPolicy", {"preemption_policy"}},
      {"spec.schedulingGates", {"scheduling_gates"}},
      {"spec.schedulingGroup", {"pod_group_name"}},
      {"spec.serviceAccountName", {"service_account_name"}},
      {"spec.priorityClassName", {"priority_class_name"}},
      {"spec.runtimeClassName", {"runtime_class_name"}},
      {"spec.volumes", {"volumes"}},
      {"spec.resourceClaims", {"claims", "extended_resource_claim"}},
      {"status.conditions", {"conditions"}},
      {"spec.containers",
       {"containers", "init_containers", "overhead", "pod_requests", "pod_limits", "host_network",
        "required_node_features", "container_statuses", "resize_infeasible",
        "pod_allocated_requests", "pod_actual_requests"}},
  };
  return *parts;
}

using Map = google::protobuf::Map<std::string, std::string>;

void CopyEntry(const std::string& key, const Map& from, Map* to) {
  const auto found = from.find(key);
  if (found == from.end()) {
    to->erase(key);
  } else {
    (*to)[key] = found->second;
  }
}

}  // namespace

std::string AnnotationField(absl::string_view key) {
  return absl::StrCat("Pod.metadata.annotations['", key, "']");
}

absl::StatusOr<PodParts> PodParts::Parse(absl::Span<const std::string> paths) {
  PodParts parts;
  for (const std::string& path : paths) {
    absl::string_view key = path;
    if (absl::ConsumeSuffix(&key, "']")) {
      if (absl::ConsumePrefix(&key, "metadata.name if metadata.labels['")) {
        parts.naming_labels_.insert(std::string(key));
        continue;
      }
      if (absl::ConsumePrefix(&key, "metadata.name if metadata.annotations['")) {
        parts.naming_annotations_.insert(std::string(key));
        continue;
      }
      if (absl::ConsumePrefix(&key, "metadata.labels['")) {
        parts.labels_.insert(std::string(key));
        continue;
      }
      if (absl::ConsumePrefix(&key, "metadata.annotations['")) {
        parts.annotations_.insert(std::string(key));
        continue;
      }
    }
    bool found = false;
    for (const NamedPart& part : NamedParts()) {
      if (path != part.path) continue;
      found = true;
      parts.volumes_ |= path == "spec.volumes";
      for (const char* field : part.fields)
        parts.fields_.insert(Pod::descriptor()->FindFieldByName(field));
    }
    if (!found)
      return absl::InvalidArgumentError(absl::StrCat("unknown part of a pod \"", path, "\""));
  }
  return parts;
}

void PodParts::Copy(const Pod& from, Pod* to) const {
  // Each field occurs once, so swapping moves it.
  Pod source = from;
  const google::protobuf::Reflection& reflection = *to->GetReflection();
  reflection.SwapFields(to, &source, {fields_.begin(), fields_.end()});
  // The name of an ephemeral volume's claim contains the pod's name.
  const auto is_ephemeral = [](const v1beta1::Volume& volume) {
    return volume.source() == "ephemeral";
  };
  const auto has = [](const std::set<std::string>& keys, const Map& map) {
    return absl::c_any_of(keys, [&](const std::string& key) { return map.contains(key); });
  };
  if ((volumes_ && absl::c_any_of(from.volumes(), is_ephemeral)) ||
      has(naming_labels_, from.labels()) || has(naming_annotations_, from.annotations())) {
    to->set_namespace_(from.namespace_());
    to->set_name(from.name());
    to->set_uid(from.uid());
  }
  for (const std::string& key : labels_) CopyEntry(key, from.labels(), to->mutable_labels());
  for (const std::string& key : annotations_)
    CopyEntry(key, from.annotations(), to->mutable_annotations());
}

void PodParts::Add(const PodParts& others) {
  fields_.insert(others.fields_.begin(), others.fields_.end());
  volumes_ |= others.volumes_;
  naming_labels_.insert(others.naming_labels_.begin(), others.naming_labels_.end());
  naming_annotations_.insert(others.naming_annotations_.begin(), others.naming_annotations_.end());
  labels_.insert(others.labels_.begin(), others.labels_.end());
  annotations_.insert(others.annotations_.begin(), others.annotations_.end());
}

}  // namespace outboard::sdk
