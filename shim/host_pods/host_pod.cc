#include "shim/host_pods/host_pod.h"

#include <utility>

#include "absl/status/status.h"

namespace outboard::host_pods {
namespace {

using kube::DocNode;

const DocNode& Member(const DocNode& node, absl::string_view name) {
  static const auto* const kNone = new DocNode;
  const DocNode* member = node.Find(name);
  return member == nullptr ? *kNone : *member;
}

std::string TextOf(const DocNode& node, absl::string_view name) {
  return std::string(node.FindString(name));
}

absl::StatusOr<HostPodPtr> Decode(const DocNode& doc) {
  const kube::ObjectIdentity identity = kube::ReadIdentityJson(doc);
  if (identity.name.empty() || identity.uid.empty())
    return absl::InvalidArgumentError("a pod without a name or uid");
  auto pod = std::make_shared<HostPod>();
  pod->pod_namespace = identity.name_space;
  pod->name = identity.name;
  pod->object_uid = identity.uid;
  pod->resource_version = identity.resource_version;
  const DocNode& status = Member(doc, "status");
  pod->ip = TextOf(status, "podIP");
  const absl::string_view phase = status.FindString("phase");
  pod->has_ended = phase == "Succeeded" || phase == "Failed";
  for (const DocNode& gate : Member(Member(doc, "spec"), "readinessGates").items)
    pod->has_gate |= gate.FindString("conditionType") == kReadinessGate;
  for (const DocNode& condition : Member(status, "conditions").items) {
    if (condition.FindString("type") != kReadinessGate) continue;
    pod->readiness = {TextOf(condition, "status"), TextOf(condition, "reason"),
                      TextOf(condition, "message")};
  }
  return HostPodPtr(std::move(pod));
}

absl::StatusOr<kube::ListPage<HostPod>> DecodeList(const DocNode& doc) {
  kube::ListPage<HostPod> page;
  const DocNode& metadata = Member(doc, "metadata");
  page.resource_version = TextOf(metadata, "resourceVersion");
  page.continue_token = TextOf(metadata, "continue");
  for (const DocNode& item : Member(doc, "items").items) {
    absl::StatusOr<HostPodPtr> pod = Decode(item);
    if (pod.ok()) {
      page.items.push_back(*std::move(pod));
    } else {
      page.rejected.push_back({kube::ReadIdentityJson(item), std::string(pod.status().message())});
    }
  }
  return page;
}

}  // namespace

informer::Resource<HostPod> HostPodsWith(const std::string& pod_namespace,
                                         const std::string& selector) {
  informer::Resource<HostPod> resource;
  resource.name = absl::StrCat("pods of plugin hosts (", selector, ")");
  resource.path = absl::StrCat("/api/v1/namespaces/", pod_namespace, "/pods");
  resource.label_selector = selector;
  resource.list_kind = "PodList";
  resource.only_json = true;
  resource.decode_json = Decode;
  resource.decode_list_json = DecodeList;
  return resource;
}

}  // namespace outboard::host_pods
