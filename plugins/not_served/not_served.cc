#include "plugins/not_served/not_served.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/selectors.h"

namespace outboard::not_served {
namespace {

std::string Message(const std::string& feature, const std::string& plugin) {
  return absl::StrCat("pod uses ", feature, ", which plugin ", plugin,
                      " decides; this host does not serve it yet");
}

// What the pod itself needs that nobody judges; absent: nothing.
std::optional<std::string> UnservedFeature(const v1alpha1::Pod& pod) {
  for (const v1alpha1::Volume& volume : pod.volumes()) {
    if (volume.source() != "unknown") continue;
    return Message(absl::StrCat("volume \"", volume.name(), "\" of an unknown kind"),
                   "NodeVolumeLimits");
  }
  for (const v1alpha1::TopologySpreadConstraint& constraint : pod.topology_spread_constraints()) {
    const bool soft =
        constraint.when_unsatisfiable() == v1alpha1::TopologySpreadConstraint::SCHEDULE_ANYWAY;
    return Message(
        absl::StrCat("a topology spread constraint (", soft ? "ScheduleAnyway" : "DoNotSchedule",
                     " over ", constraint.topology_key(), ")"),
        "PodTopologySpread");
  }
  const v1alpha1::Affinity& affinity = pod.affinity();
  auto of_kind = [](const v1alpha1::PodAffinity& rules) -> std::string {
    if (!rules.required_during_scheduling_ignored_during_execution().empty()) return "a required";
    if (!rules.preferred_during_scheduling_ignored_during_execution().empty()) return "a preferred";
    return "";
  };
  if (std::string kind = of_kind(affinity.pod_affinity()); !kind.empty()) {
    return Message(absl::StrCat(kind, " pod affinity"), "InterPodAffinity");
  }
  if (std::string kind = of_kind(affinity.pod_anti_affinity()); !kind.empty()) {
    return Message(absl::StrCat(kind, " pod anti-affinity"), "InterPodAffinity");
  }
  if (!pod.resource_claims().empty()) {
    return Message(absl::StrCat("resource claim \"", pod.resource_claims(0), "\""),
                   "DynamicResources");
  }
  if (!pod.pod_group_name().empty()) {
    return Message(absl::StrCat("scheduling group \"", pod.pod_group_name(), "\""),
                   "GangScheduling");
  }
  return std::nullopt;
}

// A required anti-affinity term of a pod that is on a node.
struct AntiAffinityTerm {
  std::vector<std::string> namespaces;
  bool has_namespace_selector = false;
  sdk::CompiledLabelSelector namespace_selector;
  sdk::CompiledLabelSelector pods;

  bool Matches(const sdk::PodView& pod, const sdk::ClusterView& cluster) const {
    return MatchesNamespace(pod, cluster) && pods.Matches(pod.proto().labels());
  }
  bool MatchesNamespace(const sdk::PodView& pod, const sdk::ClusterView& cluster) const {
    for (const std::string& name : namespaces) {
      if (name == pod.namespace_name()) return true;
    }
    if (!has_namespace_selector) return false;
    static const auto& no_labels = *new std::map<std::string, std::string>();
    const auto* labels = cluster.NamespaceLabels(pod.namespace_name());
    return namespace_selector.Matches(labels != nullptr ? *labels : no_labels);
  }
};

// Absent if the term's selectors cannot be parsed: kube-scheduler ignores such a term too.
std::optional<AntiAffinityTerm> CompileTerm(const v1alpha1::PodAffinityTerm& proto,
                                            const std::string& own_namespace) {
  AntiAffinityTerm term;
  term.namespaces.assign(proto.namespaces().begin(), proto.namespaces().end());
  if (term.namespaces.empty() && !proto.has_namespace_selector()) {
    term.namespaces.push_back(own_namespace);
  }
  if (proto.has_namespace_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.namespace_selector());
    if (!selector.ok()) return std::nullopt;
    term.has_namespace_selector = true;
    term.namespace_selector = *std::move(selector);
  }
  if (proto.has_label_selector()) {
    auto selector = sdk::CompiledLabelSelector::Parse(proto.label_selector());
    if (!selector.ok()) return std::nullopt;
    term.pods = *std::move(selector);
  }
  return term;
}

class NotServed : public sdk::Plugin, public sdk::PreFilterPlugin, public sdk::ClusterObserver {
 public:
  // Has no Filter, so a pod that it lets pass is skipped.
  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    if (std::optional<std::string> message = UnservedFeature(attempt.pod().proto())) {
      return sdk::Verdict::Unresolvable(*std::move(message));
    }
    if (RepelledByRunningPod(attempt)) return repelled_;
    return sdk::Verdict::Skip();
  }

  void OnReset() override { terms_.clear(); }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    const auto& rules = pod.pod.affinity().pod_anti_affinity();
    const bool repels = !rules.required_during_scheduling_ignored_during_execution().empty() &&
                        pod.place != sdk::Place::kNone;
    if (!repels) {
      terms_.erase(pod.pod.uid());
      return;
    }
    std::vector<AntiAffinityTerm>& terms = terms_[pod.pod.uid()];
    terms.clear();
    for (const auto& rule : rules.required_during_scheduling_ignored_during_execution()) {
      std::optional<AntiAffinityTerm> term = CompileTerm(rule, pod.pod.namespace_());
      if (term) terms.push_back(*std::move(term));
    }
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override { terms_.erase(pod.pod.uid()); }

 private:
  // Whether some pod that has a place keeps pods like this one out of its domain. Which domain that
  // is, is not looked at.
  bool RepelledByRunningPod(const sdk::Attempt& attempt) const {
    for (const auto& [uid, terms] : terms_) {
      if (uid == attempt.pod().uid()) continue;
      for (const AntiAffinityTerm& term : terms) {
        if (term.Matches(attempt.pod(), attempt.cluster())) return true;
      }
    }
    return false;
  }

  absl::flat_hash_map<std::string, std::vector<AntiAffinityTerm>> terms_;  // By the pod's uid.
  const sdk::Verdict repelled_ = sdk::Verdict::Unresolvable(
      "pod matches a required pod anti-affinity of a running pod, which plugin InterPodAffinity "
      "decides; this host does not serve it yet");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NotServed";
  d.extension_points = {v1alpha1::PRE_FILTER};
  // A refused pod can only come to pass when the pod that repels it goes, or when labels change.
  d.wake_up_events = {sdk::WakeOn(
      "Pod", {v1alpha1::ClusterEvent::DELETE, v1alpha1::ClusterEvent::UPDATE_POD_LABEL})};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NotServed>();
  };
  return d;
}

}  // namespace outboard::not_served
