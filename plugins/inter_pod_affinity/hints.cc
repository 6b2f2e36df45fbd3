#include "plugins/inter_pod_affinity/hints.h"

#include <algorithm>
#include <string>

namespace outboard::inter_pod_affinity {
namespace {

bool HasPlace(const v1beta1::Pod& pod) {
  return !pod.node_name().empty() || !pod.nominated_node_name().empty();
}

// A node's label before and after the change.
struct LabelChange {
  LabelChange(const v1beta1::Node* before, const v1beta1::Node& after, const std::string& key) {
    const auto now = after.labels().find(key);
    has = now != after.labels().end();
    if (before == nullptr) return;
    const auto then = before->labels().find(key);
    had = then != before->labels().end();
    moved = had && has && then->second != now->second;
  }
  bool had = false;
  bool has = false;
  bool moved = false;
};

bool AfterNode(const PodRules& rules, const v1beta1::Node* before, const v1beta1::Node& after) {
  if (rules.broken_affinity || rules.broken_anti_affinity) return true;
  const bool joins_domain = std::any_of(rules.required_affinity.begin(),
                                        rules.required_affinity.end(), [&](const PodTerm& term) {
                                          const LabelChange label(before, after, term.topology_key);
                                          return (!label.had && label.has) || label.moved;
                                        });
  if (joins_domain) return true;
  // A node without the label accepts a pod that has only anti-affinity.
  return std::any_of(rules.required_anti_affinity.begin(), rules.required_anti_affinity.end(),
                     [&](const PodTerm& term) {
                       const LabelChange label(before, after, term.topology_key);
                       return before == nullptr || (label.had && !label.has) || label.moved;
                     });
}

}  // namespace

sdk::Hint HintOf(const v1beta1::Pod& pod, const PodRules* rules, const sdk::ObjectChange& change,
                 const PodRules* rules_of_gone) {
  static const PodRules& kNoRules = *new PodRules();
  if (rules == nullptr) rules = &kNoRules;
  const auto answer = [](bool helps) { return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip; };
  if (change.new_node != nullptr)
    return answer(AfterNode(*rules, change.old_node, *change.new_node));

  const v1beta1::Pod* before = change.old_pod;
  const v1beta1::Pod* after = change.new_pod;
  // Only the pod's own labels can have changed; other pods may avoid them.
  if (before != nullptr && after != nullptr && after->uid() == pod.uid()) return answer(true);
  if ((after != nullptr && !HasPlace(*after)) || (before != nullptr && !HasPlace(*before))) {
    return answer(false);
  }
  if (rules->broken_affinity || rules->broken_anti_affinity) return answer(true);
  const auto wanted = [&](const v1beta1::Pod& other) {
    return MatchesAll(rules->required_affinity, other);
  };
  const auto avoided = [&](const v1beta1::Pod& other) {
    return MatchesAll(rules->required_anti_affinity, other);
  };
  if (before != nullptr && after != nullptr) {
    return answer((!wanted(*before) && wanted(*after)) || (avoided(*before) && !avoided(*after)));
  }
  if (after != nullptr) return answer(wanted(*after));
  if (avoided(*before)) return answer(true);
  return answer(rules_of_gone != nullptr &&
                (rules_of_gone->broken_anti_affinity ||
                 MatchesAll(rules_of_gone->required_anti_affinity, pod)));
}

}  // namespace outboard::inter_pod_affinity
