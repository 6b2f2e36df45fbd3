// Topology spread constraints with compiled selectors.
#ifndef OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_CONSTRAINTS_H_
#define OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_CONSTRAINTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/selectors.h"

namespace outboard::pod_topology_spread {

using WhenUnsatisfiable = v1beta1::TopologySpreadConstraint::WhenUnsatisfiable;

// Which pods a constraint counts.
//
// Threading: immutable after it is built.
// Lifetime:  a value.
// Errors:    Parse returns Kubernetes' messages.
class PodSelector {
 public:
  // Matches nothing: an absent label selector.
  PodSelector() = default;
  static PodSelector Everything();
  static absl::StatusOr<PodSelector> Parse(const v1beta1::LabelSelector& selector);

  bool Matches(const sdk::LabelMap& labels) const { return compiled_.Matches(labels); }
  bool nothing() const { return nothing_; }
  // Matches everything. Kubernetes counts no pod for such a constraint, although the incoming pod
  // matches it.
  bool empty() const { return compiled_.matches_everything(); }
  const std::vector<sdk::Requirement>& requirements() const { return compiled_.requirements(); }
  // Adds a requirement; a selector that matches nothing stays unchanged.
  void Add(sdk::Requirement requirement) { compiled_.AddRequirement(std::move(requirement)); }
  void AddLabel(const std::string& key, const std::string& value);

 private:
  bool nothing_ = true;
  sdk::CompiledLabelSelector compiled_;
};

struct Constraint {
  int32_t max_skew = 1;
  std::string topology_key;
  PodSelector selector;
  int32_t min_domains = 1;
  bool honor_affinity = true;
  bool honor_taints = false;
};

// Returns the constraints whose action is `action`. `pod_labels` provide the values of
// matchLabelKeys. Returns the error of the first selector that cannot be parsed.
absl::StatusOr<std::vector<Constraint>> ConstraintsWithAction(
    absl::Span<const v1beta1::TopologySpreadConstraint* const> constraints,
    const sdk::LabelMap& pod_labels, WhenUnsatisfiable action);

}  // namespace outboard::pod_topology_spread

#endif  // OUTBOARD_PLUGINS_POD_TOPOLOGY_SPREAD_CONSTRAINTS_H_
