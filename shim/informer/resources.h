// The watchable resources: API path and decoders. All kinds of shim/kube/wire/object_kinds.h are
// included automatically; a resource of another type is one entry in resources.cc.
#ifndef OUTBOARD_SHIM_INFORMER_RESOURCES_H_
#define OUTBOARD_SHIM_INFORMER_RESOURCES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::informer {

template <typename T>
struct Resource {
  using Ptr = std::shared_ptr<const T>;

  std::string name;  // plural, for messages
  std::string path;
  std::string field_selector;
  std::string list_kind;  // empty: unknown
  std::function<absl::StatusOr<Ptr>(kube::Decoder&, absl::string_view raw)> decode;
  std::function<absl::StatusOr<kube::ListPage<T>>(kube::Decoder&, absl::string_view raw)>
      decode_list;
  std::function<absl::StatusOr<Ptr>(const kube::DocNode& document)> decode_json;
  std::function<absl::StatusOr<kube::ListPage<T>>(const kube::DocNode& document)> decode_list_json;
  // The server may not know it (404); it then has no objects.
  bool may_be_absent = false;
  // Request JSON only, even if the server offers protobuf.
  bool only_json = false;
  std::string label_selector{};
};

// Pods that have not terminated, as kube-scheduler watches them: a terminated pod appears deleted.
const Resource<kube::PodObject>& Pods();
// The same for a process that is the extender of another scheduler. Pods that name one of
// `scheduler_names` are the profile's pods: they get its name, and `externally_scheduled`. So every
// plugin, in any language, takes them for pods of its profile.
Resource<kube::PodObject> PodsOfExtender(const std::vector<std::string>& scheduler_names,
                                         const std::string& profile);
const Resource<kube::NodeObject>& Nodes();
const Resource<kube::NamespaceObject>& Namespaces();
// One per kind of shim/kube/wire/object_kinds.h, in its order.
const std::vector<Resource<kube::ClusterObject>>& ClusterObjects();
// Objects of a resource that a plugin declared, with all fields. Uses JSON, the only encoding of
// custom resources. The resource exists only as long as its CustomResourceDefinition. If it is a
// kind of object_kinds.h, an object must be valid as that kind too; see BuiltInObject.
Resource<kube::ClusterObject> CustomObjects(const kube::CustomResourceName& resource);

// All resources to watch, each once: those of ClusterObjects() and `custom`. A resource of both is
// only among the custom ones, whose objects have all fields.
std::vector<Resource<kube::ClusterObject>> ObjectResources(
    const std::vector<kube::CustomResourceName>& custom);

// The Kubernetes kind of the contract's own object at this API path; "" for others.
std::string KindOfPath(const std::string& path);

// An object that was read as a custom one, as the kind of object_kinds.h that it is. Null for
// others.
kube::ClusterObjectPtr BuiltInObject(const kube::ClusterObject& custom);

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_RESOURCES_H_
