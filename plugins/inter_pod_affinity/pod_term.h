// Terms of pod affinity and anti-affinity, ready to match, and all that one pod has of them.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/views.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::inter_pod_affinity {

using NamespaceLabels = std::map<std::string, std::string>;

// What kube-scheduler takes for the labels of a namespace that it does not know.
const NamespaceLabels& NoLabels();

// One term.
//
// Threading: a value. Lifetime: a value. Errors: Parse tells what Kubernetes would.
struct PodTerm {
  // `owner_namespace` is that of the pod whose term it is.
  static absl::StatusOr<PodTerm> Parse(const v1alpha1::PodAffinityTerm& proto,
                                       const std::string& owner_namespace);

  // Whether the term speaks of a pod; `labels` are those of the pod's namespace.
  bool Matches(const v1alpha1::Pod& pod, const NamespaceLabels& labels) const {
    return MatchesNamespace(pod.namespace_(), labels) && selector.Matches(pod.labels());
  }
  bool MatchesNamespace(const std::string& name, const NamespaceLabels& labels) const;

  std::vector<std::string> namespaces;  // Sorted.
  bool has_namespace_selector = false;
  sdk::CompiledLabelSelector namespace_selector;  // Matches nothing if there is none.
  sdk::CompiledLabelSelector selector;
  std::string topology_key;
  // Equal for terms that say the same (in the same order); differs for any that do not.
  std::string signature;
};

// The term of a pod that is to be placed: the namespaces that its selector finds now are added to
// those that it names, and from then on pods are matched with NoLabels().
//
// As in kube-scheduler the selector itself stays. One that an empty set of labels meets (only NotIn
// and DoesNotExist) therefore matches every namespace, whatever that one's labels.
PodTerm Resolve(const PodTerm& term, const sdk::NamespaceMap& namespaces);

// Whether a resolved term matches pods of every namespace.
bool MatchesEveryNamespace(const PodTerm& resolved);

// Whether a pod matches all of the terms (resolved ones), of which there must be some.
bool MatchesAll(const std::vector<PodTerm>& terms, const v1alpha1::Pod& pod);

// A soft term: of affinity with its weight, of anti-affinity with its weight negated.
struct WeightedPodTerm {
  PodTerm term;
  int64_t weight = 0;
};

// All terms of a pod. As in kube-scheduler a list in which one term cannot be parsed is empty.
//
// Threading: immutable. Lifetime: a value. Errors: kept.
struct PodRules {
  static PodRules Parse(const v1alpha1::Pod& pod);

  std::vector<PodTerm> required_affinity;
  std::vector<PodTerm> required_anti_affinity;
  std::vector<WeightedPodTerm> preferred;
  // Whether a list of required terms is empty because it could not be parsed.
  bool broken_affinity = false;
  bool broken_anti_affinity = false;
  // What is wrong with the terms, in kube-scheduler's words; empty if nothing is.
  std::string error;
};

// Whether a pod has any term at all.
bool HasRules(const v1alpha1::Pod& pod);

// Parses the rules of pods once for all pods that have the same, as pods of one template do.
//
// Threading: thread-compatible.
// Lifetime:  what it hands out is the caller's.
// Errors:    in the rules.
class RulesCache {
 public:
  // Null for a pod without terms.
  std::shared_ptr<const PodRules> Get(const v1alpha1::Pod& pod);
  void Clear() { rules_.clear(); }

 private:
  absl::flat_hash_map<std::string, std::shared_ptr<const PodRules>> rules_;
  std::string key_;  // Kept for its memory.
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_
