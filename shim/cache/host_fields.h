// What a host gets of pods and nodes: the contract's own fields, and those that its plugins
// declared.
#ifndef OUTBOARD_SHIM_CACHE_HOST_FIELDS_H_
#define OUTBOARD_SHIM_CACHE_HOST_FIELDS_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"
#include "shim/kube/objects.h"

namespace outboard::cache {

// What a host's plugins read in addition to the contract's own fields.
//
// Threading: a value.
struct HostFields {
  absl::flat_hash_set<std::string> pod_annotations;
  absl::flat_hash_set<std::string> node_annotations;
  bool command = false;                        // of containers
  bool args = false;                           // of containers
  absl::flat_hash_set<std::string> variables;  // of containers' environments
  // Of pods.
  bool resource_version = false;
  bool service_account_name = false;
  bool priority_class_name = false;
  bool runtime_class_name = false;
  bool phase = false;
  absl::flat_hash_set<std::string> pod_conditions;  // their types
  // Of nodes.
  bool capacity = false;
  bool node_conditions = false;
  bool addresses = false;
  // The host's name in the configuration: it gets the states that its own plugins keep for placed
  // pods. Empty: none.
  std::string host_name;
  // Custom resources whose objects are sent.
  absl::flat_hash_set<std::string> custom_resources;

  bool Wants(const v1beta1::ClusterObject& object) const {
    return !object.has_generic_object() ||
           custom_resources.contains(object.generic_object().resource());
  }
  bool Wants(const v1beta1::ObjectReference& reference) const {
    // Only resources have dots, RESOURCE.VERSION.GROUP.
    return !absl::StrContains(reference.kind(), '.') || custom_resources.contains(reference.kind());
  }
  // Adds what another host's plugins read.
  void Add(const HostFields& other);
  // Whether any of PodObject::on_request or NodeObject::on_request is declared.
  bool AnyOnRequest(const kube::PodObject&) const {
    return service_account_name || priority_class_name || runtime_class_name || phase ||
           !pod_conditions.empty();
  }
  bool AnyOnRequest(const kube::NodeObject&) const {
    return capacity || node_conditions || addresses;
  }
};

// The declared ones of the fields that come only on request (PodObject::on_request,
// NodeObject::on_request). A pod's resource version is not part of them.
v1beta1::Pod DeclaredOnRequest(const kube::PodObject& pod, const HostFields& fields);
v1beta1::Node DeclaredOnRequest(const kube::NodeObject& node, const HostFields& fields);

// The pod and node as a host gets them: without what is neither in `fields` nor one of the
// contract's own fields. `out` is empty.
void CopyPod(const kube::PodObject& pod, const HostFields& fields, v1beta1::Pod* out);
void CopyNode(const kube::NodeObject& node, const HostFields& fields, v1beta1::Node* out);

}  // namespace outboard::cache

#endif  // OUTBOARD_SHIM_CACHE_HOST_FIELDS_H_
