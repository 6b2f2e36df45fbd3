// Parsed terms of pod affinity and anti-affinity, and all terms of one pod.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/selectors.h"
#include "plugin_host/sdk/views.h"

namespace outboard::inter_pod_affinity {

using NamespaceLabels = std::map<std::string, std::string>;

// The labels that kube-scheduler assumes for an unknown namespace.
const NamespaceLabels& NoLabels();

// Threading: a value.
// Lifetime:  a value.
// Errors:    Parse returns Kubernetes' messages.
struct PodTerm {
  // `owner_namespace`: the namespace of the pod that has the term.
  static absl::StatusOr<PodTerm> Parse(const v1beta1::PodAffinityTerm& proto,
                                       const std::string& owner_namespace);

  // `labels`: the labels of the pod's namespace.
  bool Matches(const v1beta1::Pod& pod, const NamespaceLabels& labels) const {
    return MatchesNamespace(pod.namespace_(), labels) && selector.Matches(pod.labels());
  }
  bool MatchesNamespace(const std::string& name, const NamespaceLabels& labels) const;

  std::vector<std::string> namespaces;  // Sorted.
  bool has_namespace_selector = false;
  sdk::CompiledLabelSelector namespace_selector;  // Matches nothing if absent.
  sdk::CompiledLabelSelector selector;
  std::string topology_key;
  // Equal exactly for terms with the same content in the same order.
  std::string signature;
};

// Resolves a term of an incoming pod: adds the namespaces that its selector matches now to the
// namespaces that it names. The caller then matches pods with NoLabels().
//
// As in kube-scheduler, the selector stays in the term. A selector that matches an empty label set
// (only NotIn and DoesNotExist) therefore matches every namespace, whatever its labels.
PodTerm Resolve(const PodTerm& term, const sdk::NamespaceMap& namespaces);

// Whether a resolved term matches pods of every namespace.
bool MatchesEveryNamespace(const PodTerm& resolved);

// Whether a pod matches all of the resolved terms, which must not be empty.
bool MatchesAll(const std::vector<PodTerm>& terms, const v1beta1::Pod& pod);

// A preferred term; the weight is negative for anti-affinity.
struct WeightedPodTerm {
  PodTerm term;
  int64_t weight = 0;
};

// All terms of a pod. As in kube-scheduler, a list with an invalid term is empty.
//
// Threading: immutable.
// Lifetime:  a value.
// Errors:    stored in `error`.
struct PodRules {
  static PodRules Parse(const v1beta1::Pod& pod);

  std::vector<PodTerm> required_affinity;
  std::vector<PodTerm> required_anti_affinity;
  std::vector<WeightedPodTerm> preferred;
  // The list of required terms is empty because it could not be parsed.
  bool broken_affinity = false;
  bool broken_anti_affinity = false;
  // kube-scheduler's message about invalid terms; empty if all are valid.
  std::string error;
};

// Whether a pod has any term.
bool HasRules(const v1beta1::Pod& pod);

// Parses equal rules once, for example for all pods of one template.
//
// Threading: thread-compatible.
// Lifetime:  callers share ownership of the results.
// Errors:    stored in the rules.
class RulesCache {
 public:
  // Returns null for a pod without terms.
  std::shared_ptr<const PodRules> Get(const v1beta1::Pod& pod);
  void Clear() { rules_.clear(); }

 private:
  absl::flat_hash_map<std::string, std::shared_ptr<const PodRules>> rules_;
  std::string key_;  // A member to reuse its memory.
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_POD_TERM_H_
