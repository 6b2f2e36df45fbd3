#include "shim/informer/resources.h"

#include "absl/strings/str_cat.h"

namespace outboard::informer {
namespace {

using kube::Decoder;
using kube::DocNode;
using kube::ObjectKind;

Resource<kube::ClusterObject> ResourceOf(const ObjectKind& kind) {
  Resource<kube::ClusterObject> resource;
  resource.name = absl::StrCat(kind.resource, kind.group().empty() ? "" : ".", kind.group());
  resource.path = kind.path();
  resource.list_kind = absl::StrCat(kind.kind, "List");
  resource.decode = [&kind](Decoder& decoder, absl::string_view raw) {
    return decoder.DecodeObject(kind, raw);
  };
  resource.decode_list = [&kind](Decoder& decoder, absl::string_view raw) {
    return decoder.DecodeObjectList(kind, raw);
  };
  resource.decode_json = [&kind](const DocNode& document) {
    return kube::DecodeObjectJson(kind, document);
  };
  resource.decode_list_json = [&kind](const DocNode& document) {
    return kube::DecodeObjectListJson(kind, document);
  };
  // The served groups depend on the server's version and configuration.
  resource.may_be_absent = true;
  return resource;
}

}  // namespace

const Resource<kube::PodObject>& Pods() {
  static const auto* resource = new Resource<kube::PodObject>{
      "pods",
      "/api/v1/pods",
      "status.phase!=Succeeded,status.phase!=Failed",
      "PodList",
      &Decoder::DecodePod,
      &Decoder::DecodePodList,
      static_cast<absl::StatusOr<kube::PodPtr> (*)(const DocNode&)>(kube::DecodePodJson),
      kube::DecodePodListJson};
  return *resource;
}

const Resource<kube::NodeObject>& Nodes() {
  static const auto* resource = new Resource<kube::NodeObject>{
      "nodes",
      "/api/v1/nodes",
      "",
      "NodeList",
      &Decoder::DecodeNode,
      &Decoder::DecodeNodeList,
      static_cast<absl::StatusOr<kube::NodePtr> (*)(const DocNode&)>(kube::DecodeNodeJson),
      kube::DecodeNodeListJson};
  return *resource;
}

const Resource<kube::NamespaceObject>& Namespaces() {
  static const auto* resource = new Resource<kube::NamespaceObject>{
      "namespaces",
      "/api/v1/namespaces",
      "",
      "NamespaceList",
      &Decoder::DecodeNamespace,
      &Decoder::DecodeNamespaceList,
      static_cast<absl::StatusOr<kube::NamespacePtr> (*)(const DocNode&)>(
          kube::DecodeNamespaceJson),
      kube::DecodeNamespaceListJson};
  return *resource;
}

Resource<kube::ClusterObject> CustomObjects(const kube::CustomResourceName& resource) {
  const std::string name = resource.full_name();
  const auto not_served = absl::UnimplementedError("only JSON is supported");
  Resource<kube::ClusterObject> custom;
  custom.name = absl::StrCat(resource.resource, ".", resource.group);
  custom.path = resource.path();
  custom.decode = [not_served](Decoder&, absl::string_view) { return not_served; };
  custom.decode_list = [not_served](Decoder&, absl::string_view) { return not_served; };
  custom.decode_json = [name](const DocNode& document) {
    return kube::DecodeCustomObject(name, document);
  };
  custom.decode_list_json = [name](const DocNode& document) {
    return kube::DecodeCustomObjectList(name, document);
  };
  custom.may_be_absent = true;
  custom.only_json = true;
  return custom;
}

const std::vector<Resource<kube::ClusterObject>>& ClusterObjects() {
  static const auto* resources = [] {
    auto* all = new std::vector<Resource<kube::ClusterObject>>();
    for (const ObjectKind& kind : kube::ObjectKinds()) all->push_back(ResourceOf(kind));
    return all;
  }();
  return *resources;
}

}  // namespace outboard::informer
