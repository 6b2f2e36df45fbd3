// For tests: the expected results of InterPodAffinity, recounted over all pods and nodes each time.
#ifndef OUTBOARD_PLUGINS_INTER_POD_AFFINITY_RECOUNT_MODEL_H_
#define OUTBOARD_PLUGINS_INTER_POD_AFFINITY_RECOUNT_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/selectors.h"

namespace outboard::inter_pod_affinity {

// A pod with its node.
struct ModelPod {
  v1beta1::Pod pod;
  std::string node;       // The node on which it runs; the node may not exist.
  std::string nominated;  // The nominated node.
};

// A cluster as plain maps, with a direct implementation of kube-scheduler's rules, without any
// index. Slow on purpose.
//
// Threading: a value.
// Lifetime:  a value.
// Errors:    none.
struct RecountModel {
  struct Term {
    std::set<std::string> namespaces;
    bool has_namespace_selector = false;
    sdk::CompiledLabelSelector namespace_selector;
    sdk::CompiledLabelSelector selector;
    std::string key;
    int64_t weight = 0;
  };
  using Labels = std::map<std::string, std::string>;
  using Pair = std::pair<std::string, std::string>;  // Key and value of a node's label.

  // nullopt: Skip. Otherwise a reason for each node, empty if the node passes. A nominated pod
  // counts as on its node if its priority is at least the pod's.
  std::optional<std::map<std::string, std::string>> Filter(const v1beta1::Pod& pod) const;
  // As Filter, without nominated pods; never skips.
  std::map<std::string, std::string> FilterNodes(const v1beta1::Pod& pod) const;
  // nullopt: Skip.
  std::optional<std::map<std::string, int64_t>> RawScores(const v1beta1::Pod& pod) const;
  static std::map<std::string, int64_t> Normalized(std::map<std::string, int64_t> raw);

  std::map<std::string, v1beta1::Node> nodes;
  std::map<std::string, ModelPod> pods;  // By uid.
  std::map<std::string, Labels> namespaces;
  int64_t hard_weight = 1;

 private:
  struct Tally {
    std::map<Pair, int64_t> existing, affinity, anti_affinity;
  };
  Labels LabelsOf(const std::string& name) const;
  static std::vector<Term> Terms(
      const google::protobuf::RepeatedPtrField<v1beta1::PodAffinityTerm>& protos,
      const v1beta1::Pod& owner);
  static std::vector<Term> Terms(
      const google::protobuf::RepeatedPtrField<v1beta1::WeightedPodAffinityTerm>& protos,
      const v1beta1::Pod& owner);
  static bool Matches(const Term& term, const v1beta1::Pod& pod, const Labels& labels);
  static bool MatchesAll(const std::vector<Term>& terms, const v1beta1::Pod& pod);
  std::vector<Term> Merged(std::vector<Term> terms) const;
  Tally Count(const v1beta1::Pod& pod) const;
  std::string Evaluate(const v1beta1::Pod& pod, const Tally& tally,
                       const v1beta1::Node& node) const;
};

}  // namespace outboard::inter_pod_affinity

#endif  // OUTBOARD_PLUGINS_INTER_POD_AFFINITY_RECOUNT_MODEL_H_
