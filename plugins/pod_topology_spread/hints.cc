#include "plugins/pod_topology_spread/hints.h"

#include <algorithm>

namespace outboard::pod_topology_spread {
namespace {

using Constraints = std::vector<Constraint>;

bool IsInvolved(const v1beta1::Pod& other, const v1beta1::Pod& pod) {
  if (other.uid() == pod.uid()) return true;
  const bool has_place = !other.node_name().empty() || !other.nominated_node_name().empty();
  return has_place && other.namespace_() == pod.namespace_();
}

bool SameMap(const sdk::LabelMap& a, const sdk::LabelMap& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
           const auto it = b.find(entry.first);
           return it != b.end() && it->second == entry.second;
         });
}

bool SameTolerations(const v1beta1::Pod& a, const v1beta1::Pod& b) {
  return std::equal(a.tolerations().begin(), a.tolerations().end(), b.tolerations().begin(),
                    b.tolerations().end(), [](const auto& x, const auto& y) {
                      return x.key() == y.key() && x.value() == y.value() &&
                             x.effect() == y.effect() && x.operator_() == y.operator_();
                    });
}

bool SameTaints(const v1beta1::Node& a, const v1beta1::Node& b) {
  return std::equal(a.taints().begin(), a.taints().end(), b.taints().begin(), b.taints().end(),
                    [](const auto& x, const auto& y) {
                      return x.key() == y.key() && x.value() == y.value() &&
                             x.effect() == y.effect();
                    });
}

bool AnyCounts(const Constraints& constraints, const v1beta1::Pod& pod) {
  return std::any_of(constraints.begin(), constraints.end(), [&](const Constraint& constraint) {
    return constraint.selector.Matches(pod.labels());
  });
}

bool AfterPodUpdate(const v1beta1::Pod& pod, const Constraints& constraints,
                    const v1beta1::Pod& before, const v1beta1::Pod& after) {
  // With other tolerations, other nodes may count.
  if (after.uid() == pod.uid() && !SameTolerations(before, after) &&
      std::any_of(constraints.begin(), constraints.end(),
                  [](const Constraint& constraint) { return constraint.honor_taints; })) {
    return true;
  }
  if (SameMap(before.labels(), after.labels())) return false;
  return std::any_of(constraints.begin(), constraints.end(), [&](const Constraint& constraint) {
    return constraint.selector.Matches(before.labels()) !=
           constraint.selector.Matches(after.labels());
  });
}

bool HasAllKeys(const v1beta1::Node& node, const Constraints& constraints) {
  return std::all_of(constraints.begin(), constraints.end(), [&](const Constraint& constraint) {
    return node.labels().contains(constraint.topology_key);
  });
}

bool AfterNodeUpdate(const Constraints& constraints, const v1beta1::Node& before,
                     const v1beta1::Node& after) {
  const bool counts = HasAllKeys(after, constraints);
  if (HasAllKeys(before, constraints) != counts) return true;
  if (!counts) return false;
  const bool moved =
      std::any_of(constraints.begin(), constraints.end(), [&](const Constraint& constraint) {
        return before.labels().at(constraint.topology_key) !=
               after.labels().at(constraint.topology_key);
      });
  return moved || !SameTaints(before, after);
}

bool AfterNode(const Constraints& constraints, const v1beta1::Node* before,
               const v1beta1::Node* after) {
  if (before != nullptr && after != nullptr) return AfterNodeUpdate(constraints, *before, *after);
  return HasAllKeys(after != nullptr ? *after : *before, constraints);
}

}  // namespace

bool MayConcern(const v1beta1::Pod& pod, const sdk::ObjectChange& change) {
  return (change.old_pod == nullptr || IsInvolved(*change.old_pod, pod)) &&
         (change.new_pod == nullptr || IsInvolved(*change.new_pod, pod));
}

sdk::Hint HintOf(const v1beta1::Pod& pod, const Constraints& constraints,
                 const sdk::ObjectChange& change) {
  bool helps;
  if (change.old_node != nullptr || change.new_node != nullptr) {
    helps = AfterNode(constraints, change.old_node, change.new_node);
  } else if (change.old_pod != nullptr && change.new_pod != nullptr) {
    helps = AfterPodUpdate(pod, constraints, *change.old_pod, *change.new_pod);
  } else {
    helps = AnyCounts(constraints, change.new_pod != nullptr ? *change.new_pod : *change.old_pod);
  }
  return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
}

}  // namespace outboard::pod_topology_spread
