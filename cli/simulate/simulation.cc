#include "cli/simulate/simulation.h"

#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/manifests/custom_object.h"
#include "cli/manifests/manifest_files.h"
#include "cli/simulate/custom_objects.h"
#include "shim/kube/wire/custom_resource.h"

namespace outboard::simulate {
namespace {

// Takes the objects that belong to a custom resource of the configuration. Counts the others, which
// are not read.
absl::Status TakeCustomObjects(const std::vector<manifests::OtherObject>& others,
                               const std::vector<config::CustomResourceRule>& custom_resources,
                               SimulationInput* scene, std::vector<std::string>* warnings) {
  std::map<std::string, std::vector<std::string>> unused;  // places
  for (const manifests::OtherObject& other : others) {
    bool used = other.kind == "DeviceClass";  // It is also among the objects that are always read.
    for (const config::CustomResourceRule& rule : custom_resources) {
      if (!manifests::IsOf(*kube::ParseCustomResourceName(rule.resource), other)) continue;
      absl::StatusOr<kube::ClusterObjectPtr> object = CustomObjectOf(rule.resource, other);
      if (!object.ok()) return object.status();
      scene->objects.push_back(*std::move(object));
      used = true;
    }
    if (!used) unused[absl::StrCat(other.kind, " of ", other.api_version)].push_back(other.place);
  }
  for (const auto& [kind, places] : unused) {
    warnings->push_back(absl::StrCat(
        places[0], ": skipped, because customResources of the configuration do not name it: ", kind,
        " (", places.size(), ")"));
  }
  return absl::OkStatus();
}

// Why a pod of a file with pods to schedule is not scheduled; empty: it is.
std::string WhySkipped(const kube::PodObject& pod) {
  if (pod.phase == "Succeeded" || pod.phase == "Failed")
    return absl::StrCat("has ended: status.phase is ", pod.phase);
  if (!pod.pod.node_name().empty())
    return absl::StrCat("has a node: spec.nodeName is ", pod.pod.node_name());
  return "";
}

}  // namespace

absl::StatusOr<SimulationInput> ReadScene(
    const std::vector<std::string>& cluster_files, const std::vector<std::string>& pod_files,
    const std::vector<config::CustomResourceRule>& custom_resources, bool strict,
    std::vector<std::string>* warnings) {
  manifests::Manifests read =
      manifests::ReadManifestFiles({cluster_files, pod_files}, strict, &std::cin);
  warnings->insert(warnings->end(), read.warnings.begin(), read.warnings.end());
  if (absl::Status status = manifests::ToStatus(read.errors); !status.ok()) return status;
  SimulationInput scene;
  scene.nodes = std::move(read.nodes);
  scene.namespaces = std::move(read.namespaces);
  scene.objects = std::move(read.objects);
  scene.priority_classes = std::move(read.priority_classes);
  if (absl::Status status = TakeCustomObjects(read.others, custom_resources, &scene, warnings);
      !status.ok()) {
    return status;
  }
  for (auto* pods : {&read.pods, &read.pods_to_schedule}) {
    for (kube::PodPtr& pod : *pods) {
      if (std::string why = WhySkipped(*pod); pods == &read.pods_to_schedule && !why.empty())
        scene.skipped.push_back({pod, std::move(why)});
      if (pod->phase == "Succeeded" || pod->phase == "Failed") continue;
      (pod->pod.node_name().empty() ? scene.pending : scene.running).push_back(std::move(pod));
    }
  }
  std::set<std::string> nodes_seen;
  for (const kube::NodePtr& node : scene.nodes) nodes_seen.insert(node->key());
  for (SkippedPod& skipped : scene.skipped) {
    const std::string& node = skipped.pod->pod.node_name();
    if (!node.empty() && !nodes_seen.contains(node))
      absl::StrAppend(&skipped.why, ", which is not in the input");
  }
  return scene;
}

void SetSchedulerName(const std::string& name, SimulationInput* scene) {
  for (kube::PodPtr& pod : scene->pending) {
    auto changed = std::make_shared<kube::PodObject>(*pod);
    changed->pod.set_scheduler_name(name);
    pod = std::move(changed);
  }
}

}  // namespace outboard::simulate
