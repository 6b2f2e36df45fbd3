#include "plugins/inter_pod_affinity/inter_pod_affinity.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/inter_pod_affinity/affinity_index.h"
#include "plugins/inter_pod_affinity/filter_state.h"
#include "plugins/inter_pod_affinity/hints.h"

namespace outboard::inter_pod_affinity {
namespace {

// kube-scheduler's messages if a profile has Filter without PreFilter, or Score without PreScore.
constexpr char kNoFilterState[] =
    "error reading \"PreFilterInterPodAffinity\" from cycleState: not found";
constexpr char kNoScoreState[] =
    "failed to read \"PreScoreInterPodAffinity\" from cycleState: not found";

constexpr char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "hardPodAffinityWeight": {
      "type": "integer", "minimum": 0, "maximum": 100, "default": 1,
      "description": "Score that a running pod's required affinity adds to the nodes of its domain, for pods that it selects."},
    "ignorePreferredTermsOfExistingPods": {
      "type": "boolean", "default": false,
      "description": "If true, preferred pod affinity and anti-affinity of running pods score only pods with preferred terms of their own."}}})json";

struct Args {
  int64_t hard_weight = 1;
  bool ignore_existing = false;
};

// Sums of weights by domain.
struct ScoreState : sdk::AttemptState {
  std::vector<ByDomain<int64_t>> sums;
};

class InterPodAffinity : public sdk::Plugin,
                         public sdk::PreFilterPlugin,
                         public sdk::FilterPlugin,
                         public sdk::PreScorePlugin,
                         public sdk::ScorePlugin,
                         public sdk::QueueingHintPlugin,
                         public sdk::ClusterObserver {
 public:
  InterPodAffinity(Args args, sdk::ClusterView cluster)
      : args_(args), index_(std::make_unique<AffinityIndex>(cluster, args.hard_weight)) {}

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const std::shared_ptr<const PodRules> rules = index_->Rules(pod);
    if (rules == nullptr && index_->repelling().empty()) return sdk::Verdict::Skip();
    if (rules != nullptr && !rules->error.empty()) {
      return sdk::Verdict::Unresolvable(absl::StrCat("parsing pod: ", rules->error));
    }
    FilterState state(pod, rules, LabelsOfNamespace(attempt), index_.get());
    if (state.idle()) return sdk::Verdict::Skip();
    attempt.NewFilterState<FilterState>(std::move(state));
    return sdk::Verdict::Success();
  }

  sdk::Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                      const sdk::NodeView& node) const override {
    return Change(attempt, pod, node, 1);
  }
  sdk::Verdict RemovePod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                         const sdk::NodeView& node) const override {
    return Change(attempt, pod, node, -1);
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* state = attempt.filter_state<FilterState>();
    if (state == nullptr) {
      block.ForEach([&](int i, sdk::Slot) { sink.Fail(i, kNoFilterState); });
      return;
    }
    block.ForEach([&](int i, sdk::Slot slot) {
      switch (state->FindObstacle(attempt.cluster().node(slot))) {
        case FilterState::Obstacle::kNone:
          return;
        case FilterState::Obstacle::kAffinity:
          return sink.Reject(i, lonely_);
        case FilterState::Obstacle::kAntiAffinity:
          return sink.Reject(i, avoids_);
        case FilterState::Obstacle::kExistingAntiAffinity:
          return sink.Reject(i, avoided_);
      }
    });
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    if (args_.ignore_existing && !HasPreferred(pod)) return sdk::Verdict::Skip();
    const std::shared_ptr<const PodRules> rules = index_->Rules(pod);
    if (rules != nullptr && !rules->error.empty()) {
      return sdk::Verdict::Error(absl::StrCat("failed to parse pod: ", rules->error));
    }
    if (rules == nullptr && index_->scoring().empty()) return sdk::Verdict::Skip();
    std::vector<ByDomain<int64_t>> sums = SumUp(attempt, rules.get());
    if (sums.empty()) return sdk::Verdict::Skip();
    attempt.NewScoreState<ScoreState>().sums = std::move(sums);
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const auto* state = attempt.score_state<ScoreState>();
    if (state == nullptr) return sdk::Verdict::Error(kNoScoreState);
    std::fill(raw.begin(), raw.end(), 0);
    for (const ByDomain<int64_t>& sums : state->sums) {
      for (size_t i = 0; i < nodes.size(); ++i) raw[i] += sums.At(nodes[i]);
    }
    return sdk::Verdict::Success();
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>,
                         absl::Span<int64_t> scores) const override {
    if (attempt.score_state<ScoreState>() == nullptr) return sdk::Verdict::Error(kNoScoreState);
    if (scores.empty()) return sdk::Verdict::Success();
    const auto [lowest, highest] = std::minmax_element(scores.begin(), scores.end());
    const int64_t min = *lowest;
    const int64_t range = *highest - min;
    for (int64_t& score : scores) {
      if (range == 0) {
        score = 0;
        continue;
      }
      // Bit for bit kube-scheduler's arithmetic.
      score = static_cast<int64_t>(static_cast<double>(sdk::kMaxScore) *
                                   (static_cast<double>(score - min) / static_cast<double>(range)));
    }
    return sdk::Verdict::Success();
  }

  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    const bool is_deletion = change.old_pod != nullptr && change.new_pod == nullptr;
    return HintOf(pod.proto(), index_->Rules(pod.proto()).get(), change,
                  is_deletion ? index_->Rules(*change.old_pod).get() : nullptr);
  }

  void OnReset() override { index_->Reset(); }
  void OnNodeChanged(sdk::Slot slot) override { index_->UpdateNode(slot); }
  void OnNodeRemoved(sdk::Slot slot, const std::string&) override { index_->UpdateNode(slot); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    index_->AddPod(pod, slot);
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    index_->RemovePod(pod, slot);
  }
  void OnNamespaceChanged(const std::string&) override { index_->UpdateNamespaces(); }
  void OnTick(absl::Time) override { index_->Tick(); }

 private:
  static const NamespaceLabels& LabelsOfNamespace(const sdk::Attempt& attempt) {
    const auto* labels = attempt.cluster().NamespaceLabels(attempt.pod().namespace_name());
    return labels != nullptr ? *labels : NoLabels();
  }
  static bool HasPreferred(const v1beta1::Pod& pod) {
    const v1beta1::Affinity& affinity = pod.affinity();
    return !affinity.pod_affinity()
                .preferred_during_scheduling_ignored_during_execution()
                .empty() ||
           !affinity.pod_anti_affinity()
                .preferred_during_scheduling_ignored_during_execution()
                .empty();
  }

  sdk::Verdict Change(const sdk::Attempt& attempt, const sdk::PodView& other,
                      const sdk::NodeView& node, int32_t sign) const {
    auto* state = attempt.filter_state<FilterState>();
    if (state == nullptr) return sdk::Verdict::Error(kNoFilterState);
    state->Change(attempt.pod().proto(), LabelsOfNamespace(attempt), other.proto(),
                  index_->Rules(other.proto()).get(), node, sign);
    return sdk::Verdict::Success();
  }

  // Empty if no running pod affects the score.
  std::vector<ByDomain<int64_t>> SumUp(const sdk::Attempt& attempt, const PodRules* rules) const {
    const v1beta1::Pod& pod = attempt.pod().proto();
    std::vector<ByDomain<int64_t>> sums;
    index_->scoring().ForEachMatch(
        pod, LabelsOfNamespace(attempt), [&](const ExistingTerm& existing) {
          if (existing.counts.empty()) return;
          ByDomain<int64_t>& of_key = NumbersOf(existing.topology, &sums);
          for (const DomainCounts::Cell& cell : existing.counts.cells()) {
            of_key.numbers[cell.domain] += cell.weight;
          }
        });
    if (rules == nullptr) return sums;
    for (const WeightedPodTerm& soft : rules->preferred) {
      const CountedPods& counted = index_->Count({&soft.term, 1}, soft.term.topology_key);
      if (counted.counts.empty()) continue;
      ByDomain<int64_t>& of_key = NumbersOf(counted.topology, &sums);
      for (const DomainCounts::Cell& cell : counted.counts.cells()) {
        of_key.numbers[cell.domain] += soft.weight * cell.count;
      }
    }
    return sums;
  }

  const Args args_;
  const std::unique_ptr<AffinityIndex> index_;
  const sdk::Verdict lonely_ =
      sdk::Verdict::Unresolvable("node(s) didn't match pod affinity rules");
  const sdk::Verdict avoids_ =
      sdk::Verdict::Unschedulable("node(s) didn't match pod anti-affinity rules");
  const sdk::Verdict avoided_ =
      sdk::Verdict::Unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");
};

Args ReadArgs(const sdk::ArgsObject& object) {
  Args args;
  args.hard_weight = object.Int("hardPodAffinityWeight", args.hard_weight);
  args.ignore_existing = object.Bool("ignorePreferredTermsOfExistingPods", args.ignore_existing);
  if (args.hard_weight < 0 || args.hard_weight > 100) {
    object.Problem("hardPodAffinityWeight",
                   sdk::InvalidValue(args.hard_weight, "not in valid range [0, 100]"));
  }
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "InterPodAffinity";
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.default_weight = 2;
  d.args_schema = kArgsSchema;
  d.wake_up_events = {sdk::WakeOn("Pod", {v1beta1::ClusterEvent::ACTION_ADD,
                                          v1beta1::ClusterEvent::ACTION_UPDATE_POD_LABEL,
                                          v1beta1::ClusterEvent::ACTION_DELETE}),
                      sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD,
                                           v1beta1::ClusterEvent::ACTION_UPDATE_NODE_LABEL})};
  d.signature = {{"metadata.namespace", "metadata.labels", "spec.affinity"}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<InterPodAffinity>(ReadArgs(context.args->root()), context.cluster);
  };
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  sdk::RequireEarlierPoint(&d, v1beta1::EXTENSION_POINT_SCORE, v1beta1::EXTENSION_POINT_PRE_SCORE);
  return d;
}

}  // namespace outboard::inter_pod_affinity
