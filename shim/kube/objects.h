// The shim's representation of Kubernetes objects: the contract's message, and the few fields that
// only the shim needs.
//
// Objects are immutable and shared by pointer between informer, queue and scheduler. An update is a
// new object.
#ifndef OUTBOARD_SHIM_KUBE_OBJECTS_H_
#define OUTBOARD_SHIM_KUBE_OBJECTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "outboard/v1beta1/objects.pb.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::kube {

// The PodScheduled condition in the API. `status` is empty if the pod has no such condition.
struct PodScheduledCondition {
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;
  std::string message;
  int64_t observed_generation = 0;
};

struct PodObject {
  // Contains all annotations. The host registry removes those not declared by a plugin before it
  // sends the pod. Without the fields in `on_request`.
  v1beta1::Pod pod;
  // A serialised v1beta1::Pod with only the fields of the contract that hosts get on request:
  // service_account_name, priority_class_name, runtime_class_name, phase and conditions. As bytes
  // they take little memory, and where no plugin declared them they are never compared or read.
  std::string on_request;
  std::string resource_version;
  std::string phase;  // "Pending", "Running", …
  PodScheduledCondition scheduled;
  // Deleted without grace period and finalizers: the DELETED event follows within milliseconds.
  bool vanishes = false;
  // Another scheduler places the pod and asks the extender about it: `pod.scheduler_name` is the
  // extender's profile, and the shim's queue does not take the pod (informer::PodsOfExtender).
  bool externally_scheduled = false;

  const std::string& uid() const { return pod.uid(); }
  // namespace/name, for logs and events.
  std::string key() const { return pod.namespace_() + "/" + pod.name(); }
};

struct NodeObject {
  // Without the fields in `on_request`.
  v1beta1::Node node;
  // As PodObject::on_request: a serialised v1beta1::Node with only capacity, conditions and
  // addresses.
  std::string on_request;
  std::string resource_version;
  // The node's conditions as "Type=Status", joined by commas in the API's order. Only compared, not
  // interpreted.
  std::string conditions;

  const std::string& uid() const { return node.uid(); }
  std::string key() const { return node.name(); }
};

struct NamespaceObject {
  v1beta1::Namespace ns;
  std::string object_uid;
  std::string resource_version;

  const std::string& uid() const { return object_uid; }
  std::string key() const { return ns.name(); }
};

// An object of one of the kinds in objects.proto.
struct ClusterObject {
  v1beta1::ClusterObject object;
  std::string object_uid;
  std::string resource_version;

  const std::string& uid() const { return object_uid; }
  // As NamespacedName. Unique among objects of the same Kubernetes kind.
  std::string key() const;
};

using PodPtr = std::shared_ptr<const PodObject>;
using NodePtr = std::shared_ptr<const NodeObject>;
using NamespacePtr = std::shared_ptr<const NamespaceObject>;
using ClusterObjectPtr = std::shared_ptr<const ClusterObject>;

// The Kubernetes kind: `Service`, `ReplicaSet`, `CSINode`, …, or a custom object's resource
// `RESOURCE.VERSION.GROUP`, which kube-scheduler also uses in events. Empty if `object` is empty.
std::string KindOf(const v1beta1::ClusterObject& object);
// `namespace/name`, or `name` if the kind is cluster-scoped.
std::string NamespacedName(const v1beta1::ClusterObject& object);
// Names the object for hosts. Empty if `object` is empty.
v1beta1::ObjectReference ReferenceTo(const v1beta1::ClusterObject& object);
// `kind/namespace/name`, or `kind/name` without a namespace; the uid does not count. Unique among
// all objects.
std::string KeyOf(const v1beta1::ObjectReference& reference);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_OBJECTS_H_
