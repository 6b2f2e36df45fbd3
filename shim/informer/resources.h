// The resources that can be watched: where each is and how it is decoded. Those of
// shim/kube/wire/object_kinds.h are all there by themselves; a new one of another type is one entry
// in resources.cc.
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
  std::string list_kind;  // empty: not known
  std::function<absl::StatusOr<Ptr>(kube::Decoder&, absl::string_view raw)> decode;
  std::function<absl::StatusOr<kube::ListPage<T>>(kube::Decoder&, absl::string_view raw)>
      decode_list;
  std::function<absl::StatusOr<Ptr>(const kube::DocNode& document)> decode_json;
  std::function<absl::StatusOr<kube::ListPage<T>>(const kube::DocNode& document)> decode_list_json;
  // A server may not know it (404); there are none then.
  bool may_be_absent = false;
  // Asked for as JSON, whatever else the server has.
  bool only_json = false;
};

// Pods that have not ended, as kube-scheduler watches them: a pod that ends looks deleted.
const Resource<kube::PodObject>& Pods();
const Resource<kube::NodeObject>& Nodes();
const Resource<kube::NamespaceObject>& Namespaces();
// One for each kind of shim/kube/wire/object_kinds.h, in its order.
const std::vector<Resource<kube::ClusterObject>>& ClusterObjects();
// Objects of a resource that a plugin named: all of their fields, so as JSON, which is all that the
// API server has where there is a CustomResourceDefinition, and only for as long as there is one.
Resource<kube::ClusterObject> CustomObjects(const kube::CustomResourceName& resource);

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_RESOURCES_H_
