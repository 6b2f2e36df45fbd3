// The resources that can be watched: where each is and how it is decoded. A new one is one line in
// resources.cc.
#ifndef OUTBOARD_SHIM_INFORMER_RESOURCES_H_
#define OUTBOARD_SHIM_INFORMER_RESOURCES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::informer {

template <typename T>
struct Resource {
  using Ptr = std::shared_ptr<const T>;

  std::string name;  // plural, for messages
  std::string path;
  std::string field_selector;
  std::string list_kind;
  absl::StatusOr<Ptr> (kube::Decoder::*decode)(absl::string_view raw);
  absl::StatusOr<kube::ListPage<T>> (kube::Decoder::*decode_list)(absl::string_view raw);
  absl::StatusOr<Ptr> (*decode_json)(const kube::DocNode& document);
  absl::StatusOr<kube::ListPage<T>> (*decode_list_json)(const kube::DocNode& document);
};

// Pods that have not ended, as kube-scheduler watches them: a pod that ends looks deleted.
const Resource<kube::PodObject>& Pods();
const Resource<kube::NodeObject>& Nodes();
const Resource<kube::NamespaceObject>& Namespaces();

}  // namespace outboard::informer

#endif  // OUTBOARD_SHIM_INFORMER_RESOURCES_H_
