#include "plugins/pod_topology_spread/pod_topology_spread.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugins/pod_topology_spread/constraints.h"
#include "plugins/pod_topology_spread/hints.h"
#include "plugins/pod_topology_spread/logarithm.h"
#include "plugins/pod_topology_spread/owners.h"
#include "plugins/pod_topology_spread/pod_topology_spread_args.h"
#include "plugins/pod_topology_spread/spread_index.h"
#include "plugins/pod_topology_spread/spread_state.h"

namespace outboard::pod_topology_spread {
namespace {

using sdk::Slot;
using sdk::Verdict;
using Proto = v1beta1::TopologySpreadConstraint;

constexpr char kHostname[] = "kubernetes.io/hostname";

// The labels that a node needs to count for the constraints.
std::vector<std::string> KeysOf(const std::vector<Constraint>& constraints) {
  std::vector<std::string> keys;
  for (const Constraint& constraint : constraints) keys.push_back(constraint.topology_key);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Rounds half away from zero, as Go's math.Round; exact, unlike x + 0.5.
int64_t Round(double x) {
  const int64_t whole = static_cast<int64_t>(x);
  const double rest = x - static_cast<double>(whole);
  return whole + (rest >= 0.5) - (rest <= -0.5);
}

class PodTopologySpread : public sdk::Plugin,
                          public sdk::PreFilterPlugin,
                          public sdk::FilterPlugin,
                          public sdk::PreScorePlugin,
                          public sdk::ScorePlugin,
                          public sdk::QueueingHintPlugin,
                          public sdk::ClusterObserver {
 public:
  PodTopologySpread(SpreadArgs args, const sdk::ClusterView& cluster)
      : system_defaulted_(args.system_defaulted),
        default_constraints_(std::move(args.default_constraints)),
        cluster_(cluster),
        index_(cluster) {
    for (const Proto& constraint : default_constraints_) defaults_.push_back(&constraint);
  }

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override;
  Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                 const sdk::NodeView& node) const override {
    return UpdateWithPod(attempt, pod, node, 1);
  }
  Verdict RemovePod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                    const sdk::NodeView& node) const override {
    return UpdateWithPod(attempt, pod, node, -1);
  }
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override;
  Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const Slot> nodes) const override;
  Verdict Score(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                absl::Span<int64_t> raw) const override;
  Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                    absl::Span<int64_t> scores) const override;
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override;

  void OnReset() override {
    index_.Reset();
    owners_.Reset();
  }
  void OnNodeChanged(Slot slot) override { index_.NodeChanged(slot); }
  void OnNodeRemoved(Slot slot, const std::string& name) override { index_.NodeChanged(slot); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, Slot slot) override {
    index_.PodAdded(pod, slot);
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, Slot slot) override {
    index_.PodRemoved(pod, slot);
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    owners_.ObjectChanged(object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    owners_.ObjectRemoved(object);
  }
  void OnTick(absl::Time now) override { index_.Tick(); }

 private:
  // The pod's constraints with this action, else the profile's.
  absl::StatusOr<std::vector<Constraint>> ConstraintsOf(const v1beta1::Pod& pod,
                                                        WhenUnsatisfiable action) const;
  // The columns that a constraint reads. `keys`: labels that nodes must have.
  SpreadColumns ColumnsOf(const sdk::Attempt& attempt, const Constraint& constraint,
                          const std::vector<std::string>& keys, bool with_sums) const;
  Verdict UpdateWithPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                        const sdk::NodeView& node, int64_t count) const;

  const bool system_defaulted_;
  const std::vector<Proto> default_constraints_;
  std::vector<const Proto*> defaults_;
  const sdk::ClusterView cluster_;
  mutable SpreadIndex index_;  // Mutable: creates columns on first use.
  Owners owners_;
  const Verdict mismatch_ =
      Verdict::Unschedulable("node(s) didn't match pod topology spread constraints");
  const Verdict missing_label_ = Verdict::Unresolvable(
      "node(s) didn't match pod topology spread constraints (missing required label)");
};

absl::StatusOr<std::vector<Constraint>> PodTopologySpread::ConstraintsOf(
    const v1beta1::Pod& pod, WhenUnsatisfiable action) const {
  const auto& own = pod.topology_spread_constraints();
  const bool hard = action == Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE;
  if (!own.empty()) {
    const std::vector<const Proto*> all(own.pointer_begin(), own.pointer_end());
    auto result = ConstraintsWithAction(all, pod.labels(), action);
    if (result.ok()) return result;
    return absl::InvalidArgumentError(
        absl::StrCat("obtaining pod's ", hard ? "hard" : "soft",
                     " topology spread constraints: ", result.status().message()));
  }
  // Default constraints have no selectors, so they always parse.
  auto result = ConstraintsWithAction(defaults_, pod.labels(), action);
  if (!result.ok() || result->empty()) return result;
  const PodSelector selector = owners_.SelectorOf(pod, cluster_.objects());
  if (selector.empty()) result->clear();
  for (Constraint& constraint : *result) constraint.selector = selector;
  return result;
}

SpreadColumns PodTopologySpread::ColumnsOf(const sdk::Attempt& attempt,
                                           const Constraint& constraint,
                                           const std::vector<std::string>& keys,
                                           bool with_sums) const {
  SpreadColumns columns;
  columns.topology = index_.TopologyOf(constraint.topology_key);
  const std::shared_ptr<MatchingPods> matching =
      index_.Matching(attempt.pod().namespace_name(), constraint.selector);
  columns.matching = matching;
  if (!with_sums) return columns;
  NodeGroupSpec spec;
  spec.keys = keys;
  if (constraint.honor_affinity) spec.affinity_of = &attempt.pod().proto();
  if (constraint.honor_taints) spec.tolerations_of = &attempt.pod().proto();
  columns.group = index_.GroupOf(spec);
  columns.sums = index_.SumsOf(*matching, columns.topology, columns.group);
  return columns;
}

Verdict PodTopologySpread::PreFilter(const sdk::Attempt& attempt,
                                     sdk::PreFilterResult* result) const {
  auto constraints =
      ConstraintsOf(attempt.pod().proto(), Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  if (!constraints.ok()) {
    return Verdict::Error(
        absl::StrCat("get constraints from pod: ", constraints.status().message()));
  }
  if (constraints->empty()) return Verdict::Skip();
  const std::vector<std::string> keys = KeysOf(*constraints);
  std::vector<HardConstraint> hard;
  for (Constraint& constraint : *constraints) {
    HardConstraint one;
    one.columns = ColumnsOf(attempt, constraint, keys, /*with_sums=*/true);
    one.max_skew = constraint.max_skew;
    one.min_domains = constraint.min_domains;
    one.self_match = constraint.selector.Matches(attempt.pod().proto().labels());
    one.selector = std::move(constraint.selector);
    hard.push_back(std::move(one));
  }
  attempt.NewFilterState<FilterState>(std::move(hard));
  return Verdict::Success();
}

Verdict PodTopologySpread::UpdateWithPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                                         const sdk::NodeView& node, int64_t count) const {
  auto* state = attempt.filter_state<FilterState>();
  if (state == nullptr) return Verdict::Error(kNoFilterState);
  if (pod.namespace_name() != attempt.pod().namespace_name()) return Verdict::Success();
  state->UpdateWithPod(pod.proto(), node.slot(), count);
  return Verdict::Success();
}

void PodTopologySpread::Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
                               sdk::FilterSink& sink) const {
  const auto* state = attempt.filter_state<FilterState>();
  if (state == nullptr) return block.ForEach([&](int i, Slot) { sink.Fail(i, kNoFilterState); });
  uint64_t candidates = block.candidates;
  for (size_t i = 0; i < state->size() && candidates != 0; ++i) {
    const FilterState::Masks masks = state->Evaluate(i, block.slots, candidates);
    sink.RejectAll(masks.missing, missing_label_);
    sink.RejectAll(masks.skewed, mismatch_);
    candidates &= ~(masks.missing | masks.skewed);
  }
}

Verdict PodTopologySpread::PreScore(const sdk::Attempt& attempt,
                                    absl::Span<const Slot> nodes) const {
  if (attempt.cluster().node_order().empty()) return Verdict::Skip();
  auto constraints =
      ConstraintsOf(attempt.pod().proto(), Proto::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
  if (!constraints.ok()) {
    return Verdict::Error(
        absl::StrCat("calculating preScoreState: ", constraints.status().message()));
  }
  if (constraints->empty()) return Verdict::Skip();
  auto& state = attempt.NewScoreState<ScoreState>();
  // With the system's defaults, nodes without a zone still count, so that pods spread by host.
  state.require_all_labels =
      !attempt.pod().proto().topology_spread_constraints().empty() || !system_defaulted_;
  std::vector<std::string> keys;
  if (state.require_all_labels) keys = KeysOf(*constraints);
  for (const Constraint& constraint : *constraints) {
    SoftConstraint& soft = state.constraints.emplace_back();
    // Each host is its own domain; its count is the count of the scored node.
    soft.by_node = constraint.topology_key == kHostname;
    soft.columns = ColumnsOf(attempt, constraint, keys, !soft.by_node);
    soft.max_skew = constraint.max_skew;
  }
  state.Weigh(nodes);
  return Verdict::Success();
}

Verdict PodTopologySpread::Score(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                                 absl::Span<int64_t> raw) const {
  const auto* state = attempt.score_state<ScoreState>();
  if (state == nullptr) return Verdict::Error(kNoScoreState);
  for (size_t i = 0; i < nodes.size(); ++i) {
    raw[i] = state->Ignores(nodes[i]) ? 0 : Round(state->Score(nodes[i]));
  }
  return Verdict::Success();
}

Verdict PodTopologySpread::Normalize(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                                     absl::Span<int64_t> scores) const {
  const auto* state = attempt.score_state<ScoreState>();
  if (state == nullptr) return Verdict::Error(kNoScoreState);
  int64_t lowest = std::numeric_limits<int64_t>::max();
  int64_t highest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (state->Ignores(nodes[i])) continue;
    lowest = std::min(lowest, scores[i]);
    highest = std::max(highest, scores[i]);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (state->Ignores(nodes[i])) {
      scores[i] = 0;
    } else if (highest == 0) {
      scores[i] = sdk::kMaxScore;
    } else {
      scores[i] = sdk::kMaxScore * (highest + lowest - scores[i]) / highest;
    }
  }
  return Verdict::Success();
}

sdk::Hint PodTopologySpread::QueueingHint(const sdk::PodView& pod,
                                          const sdk::ObjectChange& change) const {
  if (!MayConcern(pod.proto(), change)) return sdk::Hint::kSkip;
  const auto constraints = ConstraintsOf(pod.proto(), Proto::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE);
  if (!constraints.ok()) return sdk::Hint::kQueue;
  return HintOf(pod.proto(), *constraints, change);
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = "PodTopologySpread";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.default_weight = 2;
  d.args_schema = kArgsSchema;
  d.wake_up_events = {
      sdk::WakeOn("Pod", {ClusterEvent::ACTION_ADD, ClusterEvent::ACTION_UPDATE_POD_LABEL,
                          ClusterEvent::ACTION_UPDATE_POD_TOLERATION, ClusterEvent::ACTION_DELETE}),
      sdk::WakeOn("Node", {ClusterEvent::ACTION_ADD, ClusterEvent::ACTION_DELETE,
                           ClusterEvent::ACTION_UPDATE_NODE_LABEL,
                           ClusterEvent::ACTION_UPDATE_NODE_TAINT})};
  d.signature = {{"metadata.namespace", "metadata.labels", "metadata.ownerReferences",
                  "spec.nodeSelector", "spec.affinity", "spec.tolerations",
                  "spec.topologySpreadConstraints"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<PodTopologySpread>(ReadArgs(context.args), context.cluster);
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_SCORE, v1beta1::EXTENSION_POINT_PRE_SCORE);
  return d;
}

}  // namespace outboard::pod_topology_spread
