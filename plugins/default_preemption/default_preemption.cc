#include "plugins/default_preemption/default_preemption.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/disruption_budgets.h"
#include "plugin_host/sdk/group_preemption.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/preemption.h"
#include "plugin_host/sdk/validation.h"
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

class DefaultPreemption : public sdk::Plugin,
                          public sdk::PostFilterPlugin,
                          public sdk::GroupPostFilterPlugin,
                          public sdk::PreemptionGate,
                          public sdk::ClusterObserver {
 public:
  explicit DefaultPreemption(Args args) : args_(args) {}

  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                     sdk::PostFilterAnswer* answer) const override {
    if (Verdict may = sdk::MayPreempt(attempt, dry_run); !may.ok()) return may;
    const std::vector<Slot> nodes = sdk::NodesToPreemptOn(attempt, dry_run);
    sdk::PreemptionSummary summary;
    std::vector<std::string> errors;
    std::vector<PreemptionCandidate> candidates =
        FindCandidates(attempt, nodes, dry_run, &summary, &errors);
    if (candidates.empty() && !errors.empty())
      return sdk::SayPreemption(v1beta1::CODE_ERROR, sdk::JoinErrors(errors));
    if (candidates.empty()) {
      answer->clear_nomination = true;
      return sdk::SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                                summary.Text(attempt.cluster().node_order().size()));
    }
    SortByPreference(&candidates);
    answer->candidates = std::move(candidates);
    return Verdict::Success();
  }

  // Extends kube-scheduler, where members of a group make room one by one. Here any pods of lower
  // priority may be evicted until the whole group fits at the same time: pods that violate no
  // budget first, in each class the least important first.
  Verdict PostFilterGroup(const sdk::Attempt& attempt, const sdk::GroupToPlace& group,
                          sdk::GroupDryRun& dry_run,
                          sdk::GroupPreemption* preemption) const override {
    if (Verdict may = sdk::MayPreemptForGroup(attempt, group); !may.ok()) return may;
    std::vector<PodRecord*> lower;
    for (const Slot slot : attempt.cluster().node_order()) {
      for (PodRecord* pod : attempt.cluster().node(slot).pods()) {
        if (attempt.pod().priority() > pod->pod.priority()) lower.push_back(pod);
      }
    }
    sdk::SortByImportance(&lower);
    const std::vector<bool> violated = budgets_.Violated(lower);
    std::vector<sdk::VictimUnit> units;
    size_t without_violation = 0;
    for (const bool violating : {false, true}) {
      for (size_t i = lower.size(); i-- > 0;) {
        if (violated[i] == violating) units.push_back({{lower[i]}});
      }
      if (!violating) without_violation = units.size();
    }
    const std::optional<sdk::Room> room = sdk::MakeRoom(units, dry_run);
    if (!room) {
      preemption->clear_nomination = true;
      return sdk::SayPreemption(
          v1beta1::CODE_UNSCHEDULABLE,
          "the group does not fit even if all pods of lower priority are evicted.");
    }
    if (Verdict split = sdk::SplitVictims(*room, units, preemption); !split.ok()) return split;
    for (const size_t unit : room->leaving) {
      preemption->budget_violations += unit >= without_violation ? 1 : 0;
    }
    return Verdict::Success();
  }

  void OnReset() override { budgets_.Clear(); }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    budgets_.OnObjectChanged(object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    budgets_.OnObjectRemoved(object);
  }

 private:
  // Stops at enough candidates: as many as the arguments require, one of them without a violation.
  std::vector<PreemptionCandidate> FindCandidates(const sdk::Attempt& attempt,
                                                  const std::vector<Slot>& nodes,
                                                  sdk::DryRun& dry_run,
                                                  sdk::PreemptionSummary* summary,
                                                  std::vector<std::string>* errors) const {
    const size_t wanted = WantedCandidates(nodes.size());
    std::vector<PreemptionCandidate> candidates;
    bool any_without_violation = false;
    // kube-scheduler starts at a random node; here it is always the first, so that results are
    // reproducible.
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

  // Removes all pods of lower priority. Then returns as many as fit beside the pod: first those
  // whose eviction violates a budget; in each class the most important first.
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
    sdk::SortByImportance(&lower);
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
    if (group_sizes[0] > 0 && group_sizes[1] > 0) sdk::SortByImportance(&victims);
    candidate->victims.assign(victims.begin(), victims.end());
    return Verdict::Success();
  }

  const Args args_;
  sdk::DisruptionBudgets budgets_;
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
      "description": "Percentage of the nodes that could help that the search tries."},
    "minCandidateNodesAbsolute": {"type": "integer", "minimum": 0, "default": 100,
      "description": "Minimum number of nodes that the search tries."}}})json";

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = "DefaultPreemption";
  d.extension_points = {v1beta1::EXTENSION_POINT_POST_FILTER};
  sdk::DeclarePreemptionGate(&d);
  d.args_schema = kArgsSchema;
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<DefaultPreemption>(ReadArgs(context.args->root()));
  };
  return d;
}

}  // namespace outboard::default_preemption
