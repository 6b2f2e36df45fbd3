#include "shim/informer/resources.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/kube/wire/document.h"

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

// The kind that the server has under the resource's path; null: none of the contract's own.
const ObjectKind* KindAt(const std::string& path) {
  for (const ObjectKind& kind : kube::ObjectKinds()) {
    if (kind.path() == path) return &kind;
  }
  return nullptr;
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

Resource<kube::PodObject> PodsOfExtender(const std::vector<std::string>& scheduler_names,
                                         const std::string& profile) {
  if (scheduler_names.empty()) return Pods();
  const auto take = [scheduler_names, profile](kube::PodPtr* pod) {
    if (!absl::c_linear_search(scheduler_names, (*pod)->pod.scheduler_name())) return;
    auto taken = std::make_shared<kube::PodObject>(**pod);
    taken->pod.set_scheduler_name(profile);
    taken->externally_scheduled = true;
    *pod = std::move(taken);
  };
  const auto taking_pod = [take](auto decode) {
    return [take, decode](auto&&... input) -> absl::StatusOr<kube::PodPtr> {
      absl::StatusOr<kube::PodPtr> pod = decode(input...);
      if (pod.ok()) take(&*pod);
      return pod;
    };
  };
  const auto taking_list = [take](auto decode) {
    return [take, decode](auto&&... input) -> absl::StatusOr<kube::ListPage<kube::PodObject>> {
      absl::StatusOr<kube::ListPage<kube::PodObject>> page = decode(input...);
      if (page.ok()) absl::c_for_each(page->items, [&](kube::PodPtr& pod) { take(&pod); });
      return page;
    };
  };
  Resource<kube::PodObject> pods = Pods();
  pods.decode = taking_pod(std::move(pods.decode));
  pods.decode_json = taking_pod(std::move(pods.decode_json));
  pods.decode_list = taking_list(std::move(pods.decode_list));
  pods.decode_list_json = taking_list(std::move(pods.decode_list_json));
  return pods;
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
  custom.name = absl::StrCat(resource.resource, resource.group.empty() ? "" : ".", resource.group);
  custom.path = resource.path();
  custom.decode = [not_served](Decoder&, absl::string_view) { return not_served; };
  custom.decode_list = [not_served](Decoder&, absl::string_view) { return not_served; };
  const ObjectKind* const kind = KindAt(custom.path);
  custom.decode_json = [name,
                        kind](const DocNode& document) -> absl::StatusOr<kube::ClusterObjectPtr> {
    if (kind != nullptr) {
      if (auto built_in = kube::DecodeObjectJson(*kind, document); !built_in.ok()) return built_in;
    }
    return kube::DecodeCustomObject(name, document);
  };
  custom.decode_list_json = [decode = custom.decode_json](const DocNode& document) {
    return kube::DecodeObjectListJson(decode, document);
  };
  custom.may_be_absent = true;
  custom.only_json = true;
  return custom;
}

std::vector<Resource<kube::ClusterObject>> ObjectResources(
    const std::vector<kube::CustomResourceName>& custom) {
  std::vector<Resource<kube::ClusterObject>> all;
  for (const kube::CustomResourceName& resource : custom) all.push_back(CustomObjects(resource));
  for (const Resource<kube::ClusterObject>& resource : ClusterObjects()) {
    const bool is_watched = std::any_of(
        all.begin(), all.end(), [&](const auto& other) { return other.path == resource.path; });
    if (!is_watched) all.push_back(resource);
  }
  return all;
}

std::string KindOfPath(const std::string& path) {
  const ObjectKind* const kind = KindAt(path);
  return kind == nullptr ? "" : std::string(kind->kind);
}

kube::ClusterObjectPtr BuiltInObject(const kube::ClusterObject& custom) {
  if (!custom.object.has_generic_object()) return nullptr;
  const v1beta1::GenericObject& object = custom.object.generic_object();
  const auto name = kube::ParseCustomResourceName(object.resource());
  const ObjectKind* const kind = name.ok() ? KindAt(name->path()) : nullptr;
  if (kind == nullptr) return nullptr;
  const auto document = kube::ParseJson(object.name(), object.json());
  if (!document.ok()) return nullptr;
  auto built_in = kube::DecodeObjectJson(*kind, *document);
  return built_in.ok() ? *std::move(built_in) : nullptr;
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
