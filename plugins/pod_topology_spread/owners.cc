#include "plugins/pod_topology_spread/owners.h"

#include <algorithm>
#include <map>
#include <utility>

namespace outboard::pod_topology_spread {
namespace {

bool MatchesAll(const std::vector<sdk::Requirement>& wanted, const sdk::LabelMap& labels) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const sdk::Requirement& requirement) {
    auto label = labels.find(requirement.key);
    return label != labels.end() && label->second == requirement.values[0];
  });
}

}  // namespace

void Owners::ObjectChanged(const v1beta1::ClusterObject& object) {
  if (!object.has_service()) return;
  const v1beta1::Service& service = object.service();
  RemoveService(service.namespace_(), service.name());
  // A service without a selector matches no pod.
  if (service.selector().empty()) return;
  auto entry = std::make_unique<ServiceSelector>();
  for (const auto& [key, value] : service.selector()) {
    sdk::Requirement requirement;
    requirement.key = key;
    requirement.values.push_back(value);
    entry->labels.push_back(std::move(requirement));
  }
  NamespaceServices& of_namespace = services_[service.namespace_()];
  entry->place = of_namespace.buckets.Add(entry.get(), entry->labels);
  of_namespace.by_name[service.name()] = std::move(entry);
}

void Owners::ObjectRemoved(const v1beta1::ClusterObject& object) {
  if (object.has_service()) RemoveService(object.service().namespace_(), object.service().name());
}

void Owners::RemoveService(absl::string_view ns, absl::string_view name) {
  auto of_namespace = services_.find(ns);
  if (of_namespace == services_.end()) return;
  auto& by_name = of_namespace->second.by_name;
  auto service = by_name.find(name);
  if (service == by_name.end()) return;
  const ServiceSelector* entry = service->second.get();
  of_namespace->second.buckets.Remove(entry, entry->labels, entry->place);
  by_name.erase(service);
  if (by_name.empty()) services_.erase(of_namespace);
}

PodSelector Owners::SelectorOf(const v1beta1::Pod& pod, const sdk::ClusterObjects& objects) const {
  std::map<std::string, std::string> labels;
  auto of_namespace = services_.find(pod.namespace_());
  if (of_namespace != services_.end()) {
    of_namespace->second.buckets.ForEachCandidate(
        pod.labels(), [&](const ServiceSelector* service) {
          if (!MatchesAll(service->labels, pod.labels())) return;
          for (const sdk::Requirement& label : service->labels) labels[label.key] = label.values[0];
        });
  }
  const v1beta1::ControllerReference& owner = pod.controller();
  const bool is_rc = owner.api_version() == "v1" && owner.kind() == "ReplicationController";
  const bool is_set = owner.api_version() == "apps/v1" &&
                      (owner.kind() == "ReplicaSet" || owner.kind() == "StatefulSet");
  const v1beta1::PodController* workload = nullptr;
  if (is_rc || is_set) {
    workload = objects.Find<v1beta1::PodController>(
        sdk::WorkloadKey(owner.kind(), pod.namespace_(), owner.name()));
  }
  if (workload != nullptr && is_rc) {
    for (const auto& [key, value] : workload->selector().match_labels()) labels[key] = value;
  }
  PodSelector result = PodSelector::Everything();
  for (const auto& [key, value] : labels) result.AddLabel(key, value);
  // A set without a valid selector adds nothing.
  if (workload != nullptr && is_set && workload->has_selector()) {
    absl::StatusOr<PodSelector> own = PodSelector::Parse(workload->selector());
    if (own.ok()) {
      for (const sdk::Requirement& requirement : own->requirements()) result.Add(requirement);
    }
  }
  return result;
}

}  // namespace outboard::pod_topology_spread
