#include "plugins/node_affinity/node_affinity.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/selectors.h"
#include "plugins/node_affinity/node_affinity_args.h"

namespace outboard::node_affinity {
namespace {

using v1beta1::SelectorRequirement;

struct RequiredState : sdk::AttemptState {
  sdk::RequiredNodeAffinity required;
};
struct PreferredState : sdk::AttemptState {
  sdk::PreferredNodeTerms preferred;
};

const v1beta1::NodeAffinity& AffinityOf(const sdk::Attempt& attempt) {
  return attempt.pod().proto().affinity().node_affinity();
}

// The node names that a term allows; nullopt: the term does not restrict names.
std::optional<std::set<std::string>> NamesOfTerm(const v1beta1::NodeSelectorTerm& term) {
  std::optional<std::set<std::string>> names;
  for (const SelectorRequirement& field : term.match_fields()) {
    if (field.key() != "metadata.name" || field.operator_() != SelectorRequirement::OPERATOR_IN)
      continue;
    std::set<std::string> listed(field.values().begin(), field.values().end());
    if (names) {
      std::set<std::string> both;
      std::set_intersection(names->begin(), names->end(), listed.begin(), listed.end(),
                            std::inserter(both, both.end()));
      listed = std::move(both);
    }
    names = std::move(listed);
  }
  return names;
}

class NodeAffinity : public sdk::Plugin,
                     public sdk::NodeLocalPlugin,
                     public sdk::PreFilterPlugin,
                     public sdk::FilterPlugin,
                     public sdk::PreScorePlugin,
                     public sdk::ScorePlugin,
                     public sdk::QueueingHintPlugin {
 public:
  explicit NodeAffinity(const v1beta1::NodeAffinity& added) {
    if (added.has_required_during_scheduling_ignored_during_execution()) {
      added_required_.emplace(added.required_during_scheduling_ignored_during_execution());
    }
    const auto& preferred = added.preferred_during_scheduling_ignored_during_execution();
    if (!preferred.empty()) {
      // The arguments are already validated.
      added_preferred_ =
          sdk::PreferredNodeTerms::Parse(preferred).value_or(sdk::PreferredNodeTerms());
    }
  }

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult* result) const override {
    const v1beta1::NodeAffinity& affinity = AffinityOf(attempt);
    const bool has_required = affinity.has_required_during_scheduling_ignored_during_execution();
    if (!has_required && !added_required_ && attempt.pod().proto().node_selector().empty()) {
      return sdk::Verdict::Skip();
    }
    attempt.NewFilterState<RequiredState>().required =
        sdk::RequiredNodeAffinity(attempt.pod().proto());
    const auto& terms =
        affinity.required_during_scheduling_ignored_during_execution().node_selector_terms();
    if (terms.empty()) return sdk::Verdict::Success();
    std::set<std::string> names;
    for (const v1beta1::NodeSelectorTerm& term : terms) {
      std::optional<std::set<std::string>> of_term = NamesOfTerm(term);
      if (!of_term) return sdk::Verdict::Success();  // Terms are alternatives: any node may match.
      names.merge(*of_term);
    }
    if (names.empty()) return sdk::Verdict::Unresolvable("pod affinity terms conflict");
    result->node_names = std::move(names);
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<RequiredState>();
    if (state == nullptr) {  // The profile may have no PreFilter.
      auto& made = attempt.NewFilterState<RequiredState>();
      made.required = sdk::RequiredNodeAffinity(attempt.pod().proto());
      state = &made;
    }
    block.ForEach([&](int i, sdk::Slot slot) {
      const sdk::NodeView node = attempt.cluster().node(slot);
      // As in kube-scheduler, a term that cannot be parsed matches nothing.
      if (added_required_ && !added_required_->Matches(node).value_or(false)) {
        sink.Reject(i, enforced_);
      } else if (!state->required.Matches(node).value_or(false)) {
        sink.Reject(i, mismatch_);
      }
    });
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt,
                        absl::Span<const sdk::Slot> nodes) const override {
    const auto& terms = AffinityOf(attempt).preferred_during_scheduling_ignored_during_execution();
    if (terms.empty() && !added_preferred_) return sdk::Verdict::Skip();
    return MakePreferred(attempt);
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    if (attempt.score_state<PreferredState>() == nullptr) {  // The profile may have no PreScore.
      sdk::Verdict verdict = MakePreferred(attempt);
      if (!verdict.ok()) return verdict;
    }
    const sdk::PreferredNodeTerms& preferred = attempt.score_state<PreferredState>()->preferred;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const sdk::NodeView node = attempt.cluster().node(nodes[i]);
      raw[i] = preferred.Score(node) + (added_preferred_ ? added_preferred_->Score(node) : 0);
    }
    return sdk::Verdict::Success();
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/false, scores);
    return sdk::Verdict::Success();
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (added_required_ && !added_required_->Matches(*change.new_node).value_or(false)) {
      return sdk::Hint::kSkip;
    }
    const sdk::RequiredNodeAffinity required(pod.proto());
    const absl::StatusOr<bool> matches = required.Matches(*change.new_node);
    if (!matches.ok()) return sdk::Hint::kQueue;
    if (!*matches) return sdk::Hint::kSkip;
    if (change.old_node == nullptr) return sdk::Hint::kQueue;
    const absl::StatusOr<bool> matched = required.Matches(*change.old_node);
    return matched.ok() && *matched ? sdk::Hint::kSkip : sdk::Hint::kQueue;
  }

 private:
  static sdk::Verdict MakePreferred(const sdk::Attempt& attempt) {
    auto parsed = sdk::PreferredNodeTerms::Parse(
        AffinityOf(attempt).preferred_during_scheduling_ignored_during_execution());
    if (!parsed.ok()) return sdk::Verdict::Error(std::string(parsed.status().message()));
    attempt.NewScoreState<PreferredState>().preferred = *std::move(parsed);
    return sdk::Verdict::Success();
  }

  std::optional<sdk::CompiledNodeSelector> added_required_;
  std::optional<sdk::PreferredNodeTerms> added_preferred_;
  const sdk::Verdict enforced_ =
      sdk::Verdict::Unresolvable("node(s) didn't match scheduler-enforced node affinity");
  const sdk::Verdict mismatch_ =
      sdk::Verdict::Unresolvable("node(s) didn't match Pod's node affinity/selector");
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "NodeAffinity";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.default_weight = 2;
  d.args_schema = kArgsSchema;
  d.wake_up_events = {sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD,
                                           v1beta1::ClusterEvent::ACTION_UPDATE_NODE_LABEL})};
  d.signature = {{"spec.nodeSelector", "spec.affinity"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NodeAffinity>(ReadAddedAffinity(context.args->root()));
  };
  return d;
}

}  // namespace outboard::node_affinity
