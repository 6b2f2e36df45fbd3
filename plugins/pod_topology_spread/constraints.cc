#include "plugins/pod_topology_spread/constraints.h"

#include <utility>

namespace outboard::pod_topology_spread {

using Proto = v1beta1::TopologySpreadConstraint;

PodSelector PodSelector::Everything() {
  static const auto& everything =
      *new sdk::CompiledLabelSelector(*sdk::CompiledLabelSelector::Parse({}));
  PodSelector result;
  result.nothing_ = false;
  result.compiled_ = everything;
  return result;
}

absl::StatusOr<PodSelector> PodSelector::Parse(const v1beta1::LabelSelector& selector) {
  auto compiled = sdk::CompiledLabelSelector::Parse(selector);
  if (!compiled.ok()) return compiled.status();
  PodSelector result;
  result.nothing_ = false;
  result.compiled_ = *std::move(compiled);
  return result;
}

void PodSelector::AddLabel(const std::string& key, const std::string& value) {
  sdk::Requirement requirement;
  requirement.key = key;
  requirement.values.push_back(value);
  Add(std::move(requirement));
}

absl::StatusOr<std::vector<Constraint>> ConstraintsWithAction(
    absl::Span<const Proto* const> constraints, const sdk::LabelMap& pod_labels,
    WhenUnsatisfiable action) {
  std::vector<Constraint> result;
  for (const Proto* proto : constraints) {
    if (proto->when_unsatisfiable() != action) continue;
    Constraint constraint;
    if (proto->has_label_selector()) {
      absl::StatusOr<PodSelector> selector = PodSelector::Parse(proto->label_selector());
      if (!selector.ok()) return selector.status();
      constraint.selector = *std::move(selector);
    }
    // The API server also merges these into the label selector (on by default), with the label
    // values at the pod's creation. As kube-scheduler, this merges the current values; a pod whose
    // labels changed since creation matches nothing.
    for (const std::string& key : proto->match_label_keys()) {
      auto label = pod_labels.find(key);
      if (label != pod_labels.end()) constraint.selector.AddLabel(key, label->second);
    }
    constraint.max_skew = proto->max_skew();
    constraint.topology_key = proto->topology_key();
    if (proto->has_min_domains()) constraint.min_domains = proto->min_domains();
    constraint.honor_affinity =
        proto->node_affinity_policy() != Proto::NODE_INCLUSION_POLICY_IGNORE;
    constraint.honor_taints = proto->node_taints_policy() == Proto::NODE_INCLUSION_POLICY_HONOR;
    result.push_back(std::move(constraint));
  }
  return result;
}

}  // namespace outboard::pod_topology_spread
