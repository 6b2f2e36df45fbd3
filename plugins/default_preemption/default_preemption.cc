#include "plugins/default_preemption/default_preemption.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/default_preemption/budgets.h"
#include "plugins/default_preemption/victims.h"

namespace outboard::default_preemption {
namespace {

using sdk::PodRecord;
using sdk::PreemptionCandidate;
using sdk::Slot;
using sdk::Verdict;

struct Args {
  int64_t min_candidate_nodes_percentage = 10;
  int64_t min_candidate_nodes_absolute = 100;
};

// Asked to leave by a scheduler, and leaving.
bool IsLeavingForAnother(const v1alpha1::Pod& pod) {
  return pod.deletion_unix_seconds() != 0 && pod.preempted_by_scheduler();
}

// Why no node helps: how often each reason was given, and what is said of all other nodes.
class Summary {
 public:
  void Add(const Verdict& verdict) {
    ++nodes_;
    for (const std::string& reason : verdict.reasons()) ++reasons_[reason];
  }
  std::string Text(size_t all_nodes) const {
    std::map<std::string, size_t> reasons = reasons_;
    if (nodes_ < all_nodes) {
      reasons["Preemption is not helpful for scheduling"] += all_nodes - nodes_;
    }
    std::vector<std::string> parts;
    for (const auto& [reason, count] : reasons) parts.push_back(absl::StrCat(count, " ", reason));
    // As strings, so that "10 …" stands before "2 …".
    std::sort(parts.begin(), parts.end());
    std::string text = absl::StrCat("0/", all_nodes, " nodes are available:");
    if (!parts.empty()) absl::StrAppend(&text, " ", absl::StrJoin(parts, ", "), ".");
    return text;
  }

 private:
  size_t nodes_ = 0;
  std::map<std::string, size_t> reasons_;
};

// Errors of several nodes as one, as kube-scheduler joins them: each text once.
std::string JoinErrors(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  std::set<std::string> seen;
  for (const std::string& error : errors) {
    if (seen.insert(error).second) distinct.push_back(error);
  }
  if (distinct.size() == 1) return distinct[0];
  return absl::StrCat("[", absl::StrJoin(distinct, ", "), "]");
}

Verdict Say(v1alpha1::Code code, absl::string_view message) {
  return Verdict(code, absl::StrCat("preemption: ", message));
}

class DefaultPreemption : public sdk::Plugin,
                          public sdk::PostFilterPlugin,
                          public sdk::PreEnqueuePlugin,
                          public sdk::QueueingHintPlugin,
                          public sdk::ClusterObserver {
 public:
  explicit DefaultPreemption(Args args) : args_(args) {}

  // Whether evictions are under way for the pod is the shim's to know, and it never asks here.
  Verdict PreEnqueue(const sdk::PodView&, const sdk::ClusterView&, absl::Time) const override {
    return Verdict::Success();
  }

  // A pod that goes lets events count for one whose evictions are under way, but those that
  // rejected it tell whether it helps.
  sdk::Hint QueueingHint(const sdk::PodView&, const sdk::ObjectChange&) const override {
    return sdk::Hint::kSkip;
  }

  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                     sdk::PostFilterAnswer* answer) const override {
    if (attempt.pod().proto().preemption_policy() == v1alpha1::NEVER) {
      return Say(v1alpha1::UNSCHEDULABLE, "not eligible due to preemptionPolicy=Never.");
    }
    if (AwaitsVictims(attempt, dry_run)) {
      return Say(v1alpha1::UNSCHEDULABLE,
                 "not eligible due to a terminating pod on the nominated node.");
    }
    std::vector<Slot> nodes;
    for (Slot slot : attempt.cluster().node_order()) {
      if (dry_run.CodeOf(slot) == v1alpha1::UNSCHEDULABLE) nodes.push_back(slot);
    }
    Summary summary;
    std::vector<std::string> errors;
    std::vector<PreemptionCandidate> candidates =
        FindCandidates(attempt, nodes, dry_run, &summary, &errors);
    if (candidates.empty() && !errors.empty()) return Say(v1alpha1::ERROR, JoinErrors(errors));
    if (candidates.empty()) {
      answer->clear_nomination = true;
      return Say(v1alpha1::UNSCHEDULABLE, summary.Text(attempt.cluster().node_order().size()));
    }
    SortByPreference(&candidates);
    answer->candidates = std::move(candidates);
    return Verdict::Success();
  }

  void OnReset() override { budgets_.Clear(); }
  void OnObjectChanged(const v1alpha1::ClusterObject*,
                       const v1alpha1::ClusterObject& object) override {
    if (object.has_pod_disruption_budget()) budgets_.Set(object.pod_disruption_budget());
  }
  void OnObjectRemoved(const v1alpha1::ClusterObject& object) override {
    if (!object.has_pod_disruption_budget()) return;
    const v1alpha1::PodDisruptionBudget& budget = object.pod_disruption_budget();
    budgets_.Remove(budget.namespace_(), budget.name());
  }

 private:
  // The pod has had others leave its nominated node, and they are on their way. Unless the node
  // became one that nobody's leaving helps: then it may look elsewhere.
  bool AwaitsVictims(const sdk::Attempt& attempt, const sdk::DryRun& dry_run) const {
    const std::string& name = attempt.pod().proto().nominated_node_name();
    if (name.empty()) return false;
    const std::optional<sdk::NodeView> node = attempt.cluster().FindNode(name);
    if (!node || dry_run.CodeOf(node->slot()) == v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE) {
      return false;
    }
    return std::any_of(node->pods().begin(), node->pods().end(), [&](const PodRecord* pod) {
      return pod->pod.priority() < attempt.pod().priority() && IsLeavingForAnother(pod->pod);
    });
  }

  // Enough of them: one without a broken budget among as many as the arguments ask for.
  std::vector<PreemptionCandidate> FindCandidates(const sdk::Attempt& attempt,
                                                  const std::vector<Slot>& nodes,
                                                  sdk::DryRun& dry_run, Summary* summary,
                                                  std::vector<std::string>* errors) const {
    const size_t wanted = WantedCandidates(nodes.size());
    std::vector<PreemptionCandidate> candidates;
    bool any_without_violation = false;
    // kube-scheduler begins at a random node; here it is always the first, so that what happens can
    // be told beforehand.
    for (Slot slot : nodes) {
      if (any_without_violation && candidates.size() >= wanted) break;
      PreemptionCandidate candidate;
      candidate.slot = slot;
      Verdict verdict = SelectVictims(attempt, slot, dry_run, &candidate);
      dry_run.End();
      if (verdict.ok() && candidate.victims.empty()) {
        verdict = Verdict::Error(absl::StrCat("expected at least one victim pod on node ",
                                              sdk::Quote(attempt.cluster().node(slot).name())));
      }
      if (verdict.ok()) {
        any_without_violation |= candidate.budget_violations == 0;
        candidates.push_back(std::move(candidate));
        continue;
      }
      if (!verdict.rejected()) errors->push_back(absl::StrJoin(verdict.reasons(), ", "));
      summary->Add(verdict);
    }
    return candidates;
  }

  size_t WantedCandidates(size_t nodes) const {
    const size_t share = nodes * static_cast<size_t>(args_.min_candidate_nodes_percentage) / 100;
    return std::min(nodes,
                    std::max(share, static_cast<size_t>(args_.min_candidate_nodes_absolute)));
  }

  // All less important pods leave; then as many as fit beside the pod come back, those whose
  // eviction would break a budget first, and in each group the most important first.
  Verdict SelectVictims(const sdk::Attempt& attempt, Slot slot, sdk::DryRun& dry_run,
                        PreemptionCandidate* candidate) const {
    std::vector<PodRecord*> lower;
    for (PodRecord* pod : attempt.cluster().node(slot).pods()) {
      if (pod->pod.priority() < attempt.pod().priority()) lower.push_back(pod);
    }
    if (lower.empty()) {
      return Verdict::Unresolvable("No preemption victims found for incoming pod");
    }
    dry_run.Begin(slot);
    for (PodRecord* pod : lower) {
      if (Verdict removed = dry_run.RemovePod(*pod); !removed.ok()) return removed;
    }
    if (Verdict fits = dry_run.Filter(); !fits.ok()) return fits;
    SortByImportance(&lower);
    const std::vector<bool> violated = budgets_.Violated(lower);
    std::vector<PodRecord*> victims;
    std::array<size_t, 2> group_sizes = {0, 0};
    for (const bool violating : {true, false}) {
      for (size_t i = 0; i < lower.size(); ++i) {
        if (violated[i] != violating) continue;
        ++group_sizes[violating ? 1 : 0];
        if (Verdict added = dry_run.AddPod(*lower[i]); !added.ok()) return added;
        if (dry_run.Filter().ok()) continue;
        if (Verdict removed = dry_run.RemovePod(*lower[i]); !removed.ok()) return removed;
        victims.push_back(lower[i]);
        candidate->budget_violations += violating ? 1 : 0;
      }
    }
    if (group_sizes[0] > 0 && group_sizes[1] > 0) SortByImportance(&victims);
    candidate->victims.assign(victims.begin(), victims.end());
    return Verdict::Success();
  }

  const Args args_;
  Budgets budgets_;
};

Args ReadArgs(const sdk::ArgsObject& object) {
  constexpr char kPercentage[] = "minCandidateNodesPercentage";
  constexpr char kAbsolute[] = "minCandidateNodesAbsolute";
  Args args;
  args.min_candidate_nodes_percentage =
      object.Int(kPercentage, args.min_candidate_nodes_percentage);
  args.min_candidate_nodes_absolute = object.Int(kAbsolute, args.min_candidate_nodes_absolute);
  if (args.min_candidate_nodes_percentage < 0 || args.min_candidate_nodes_percentage > 100) {
    object.Problem(kPercentage, sdk::InvalidValue(args.min_candidate_nodes_percentage,
                                                  "not in valid range [0, 100]"));
  }
  if (args.min_candidate_nodes_absolute < 0) {
    object.Problem(kAbsolute, sdk::InvalidValue(args.min_candidate_nodes_absolute,
                                                "not in valid range [0, inf)"));
  }
  if (args.min_candidate_nodes_percentage == 0 && args.min_candidate_nodes_absolute == 0) {
    object.Problem(
        kPercentage,
        sdk::InvalidValue(0, "cannot be zero at the same time as minCandidateNodesAbsolute"));
    object.Problem(
        kAbsolute,
        sdk::InvalidValue(0, "cannot be zero at the same time as minCandidateNodesPercentage"));
  }
  return args;
}

constexpr char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "minCandidateNodesPercentage": {"type": "integer", "minimum": 0, "maximum": 100, "default": 10,
      "description": "How many of the nodes that could help are tried, in percent of them."},
    "minCandidateNodesAbsolute": {"type": "integer", "minimum": 0, "default": 100,
      "description": "How many are tried at least."}}})json";

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "DefaultPreemption";
  d.extension_points = {v1alpha1::PRE_ENQUEUE, v1alpha1::POST_FILTER};
  d.args_schema = kArgsSchema;
  // A gated preemptor is looked at again when a pod has gone.
  d.wake_up_events = {sdk::WakeOn("Pod", {v1alpha1::ClusterEvent::DELETE})};
  // The shim keeps the gate in this plugin's name.
  d.interests = {sdk::InterestIn(v1alpha1::PRE_ENQUEUE, {})};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<DefaultPreemption>(ReadArgs(context.args->root()));
  };
  return d;
}

}  // namespace outboard::default_preemption
