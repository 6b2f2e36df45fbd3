#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "plugin_host/sdk/disruption_budgets.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/preemption.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/cost_aware_preemptor/cheapest_set.h"
#include "plugins/cost_aware_preemptor/victim_rules.h"

namespace outboard::cost_aware_preemptor {
namespace {

using sdk::PodRecord;
using sdk::PreemptionCandidate;
using sdk::Slot;
using sdk::Verdict;
using sdk::WorkloadType;

constexpr char kName[] = "CostAwarePreemptor";
constexpr char kVictimsMetric[] = "outboard_cost_aware_preemptor_victims_total";
constexpr char kWorkLostMetric[] = "outboard_cost_aware_preemptor_work_lost_gpu_seconds_total";
constexpr size_t kNumTypes = 3;
// The shim takes another one where the best cannot be taken any more.
constexpr size_t kEnoughCandidates = 8;

// By WorkloadType.
constexpr std::array<const char*, kNumTypes> kTypeNames = {"other", "training", "inference"};

// An attempt that needs the word of other hosts asks again, with the answers; what was young enough
// the first time must be so then.
struct AttemptMemory : sdk::AttemptState {
  absl::Time began;
  bool counted = false;
};

// What may be made to leave a node, all of it or none: a pod. Of a gang it will be the members on
// the node, and those elsewhere that go with them.
struct Unit {
  std::vector<PodRecord*> pods;
  WorkloadType type = WorkloadType::kOther;
  Loss loss;
};

// A node with units that may leave.
struct Offer {
  Slot slot = sdk::kNoSlot;
  std::vector<Unit> units;
  Price at_least;  // No set is cheaper.
};

struct PricedCandidate {
  PreemptionCandidate candidate;
  Price price;
  size_t position = 0;  // In node order.
  std::vector<Unit> units;
};

// Two pods of which this is equal are the same to everybody who judges a node, unless he goes by
// names.
std::string WhatFiltersSee(const v1alpha1::Pod& pod) {
  v1alpha1::Pod seen = pod;
  seen.clear_uid();
  seen.clear_name();
  seen.clear_creation_unix_seconds();
  seen.clear_start_unix_seconds();
  seen.clear_generation();
  for (const std::string& key : Annotations()) seen.mutable_annotations()->erase(key);
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  seen.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Tries sets of units out on a node.
class NodeTrials {
 public:
  NodeTrials(sdk::DryRun* dry_run, const std::vector<Unit>* units)
      : dry_run_(dry_run), units_(units), gone_(units->size(), false) {}

  bool Fits(const UnitSet& set) {
    for (size_t i = 0; i < set.size(); ++i) {
      if (set[i] == gone_[i]) continue;
      for (PodRecord* pod : (*units_)[i].pods) {
        if (!Keep(set[i] ? dry_run_->RemovePod(*pod) : dry_run_->AddPod(*pod))) return false;
      }
      gone_[i] = set[i];
    }
    Verdict verdict = dry_run_->Filter();
    if (!first_) first_ = verdict;
    if (!verdict.ok() && !verdict.rejected()) return Keep(std::move(verdict));
    return verdict.ok();
  }
  // A plugin failed.
  bool failed() const { return failure_.has_value(); }
  // Why not even all of them are enough, or what failed.
  const Verdict& verdict() const { return failure_ ? *failure_ : *first_; }

 private:
  bool Keep(Verdict verdict) {
    if (verdict.ok()) return true;
    failure_ = std::move(verdict);
    return false;
  }

  sdk::DryRun* const dry_run_;
  const std::vector<Unit>* const units_;
  UnitSet gone_;
  std::optional<Verdict> first_, failure_;
};

class CostAwarePreemptor : public sdk::Plugin,
                           public sdk::PostFilterPlugin,
                           public sdk::PreemptionGate,
                           public sdk::ClusterObserver {
 public:
  CostAwarePreemptor(Rules rules, sdk::Metrics* metrics) : rules_(std::move(rules)) {
    for (size_t type = 0; type < kNumTypes; ++type) {
      victims_[type] = metrics->NewCounter(kVictimsMetric, {kTypeNames[type]});
      work_lost_[type] = metrics->NewCounter(kWorkLostMetric, {kTypeNames[type]});
    }
  }

  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                     sdk::PostFilterAnswer* answer) const override {
    if (Verdict may = sdk::MayPreempt(attempt, dry_run); !may.ok()) return may;
    if (attempt.score_state<AttemptMemory>() == nullptr)
      attempt.NewScoreState<AttemptMemory>().began = attempt.now();
    AttemptMemory& memory = *attempt.score_state<AttemptMemory>();
    sdk::PreemptionSummary summary;
    SparedCounts spared = {};
    const std::vector<Offer> offers = OffersOf(attempt, dry_run, memory.began, &summary, &spared);
    std::vector<std::string> errors;
    std::vector<PricedCandidate> found = TryOut(offers, dry_run, &summary, &errors);
    if (found.empty() && !errors.empty())
      return sdk::SayPreemption(v1alpha1::ERROR, sdk::JoinErrors(errors));
    if (found.empty()) {
      answer->clear_nomination = true;
      return sdk::SayPreemption(
          v1alpha1::UNSCHEDULABLE,
          summary.Text(attempt.cluster().node_order().size()) + SparedText(spared, rules_));
    }
    if (!std::exchange(memory.counted, true)) Count(found.front());
    for (PricedCandidate& one : found) answer->candidates.push_back(std::move(one.candidate));
    return Verdict::Success();
  }

  void OnReset() override {
    budgets_.Clear();
    facts_.clear();
    malformed_.Clear();
  }
  void OnObjectChanged(const v1alpha1::ClusterObject*,
                       const v1alpha1::ClusterObject& object) override {
    budgets_.OnObjectChanged(object);
  }
  void OnObjectRemoved(const v1alpha1::ClusterObject& object) override {
    budgets_.OnObjectRemoved(object);
  }
  void OnPodRemoved(const PodRecord& pod) override {
    facts_.erase(&pod);
    if (malformed_.warned() > 0)
      malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }

 private:
  struct KnownFacts {
    uint64_t generation = 0;
    PodFacts facts;
  };

  const PodFacts& FactsOf(const PodRecord& pod) const {
    const auto [it, is_new] = facts_.try_emplace(&pod);
    if (is_new || it->second.generation != pod.generation)
      it->second = {pod.generation, ReadFacts(pod, rules_, &malformed_)};
    return it->second.facts;
  }

  bool BeyondInference(const Unit& unit) const {
    return rules_.inference_first && unit.type != WorkloadType::kInference;
  }
  // At least 0; in milli-GPU-seconds.
  static int64_t CostOf(const Unit& unit) { return unit.loss.work + unit.loss.restart; }

  // The most important first, which is the order in which budgets are charged.
  int Violations(std::vector<PodRecord*> pods) const {
    sdk::SortByImportance(&pods);
    const std::vector<bool> violated = budgets_.Violated(pods);
    return static_cast<int>(std::count(violated.begin(), violated.end(), true));
  }

  std::vector<Offer> OffersOf(const sdk::Attempt& attempt, const sdk::DryRun& dry_run,
                              absl::Time now, sdk::PreemptionSummary* summary,
                              SparedCounts* spared) const;
  // Candidates, best first: the best of all, and some more.
  std::vector<PricedCandidate> TryOut(const std::vector<Offer>& offers, sdk::DryRun& dry_run,
                                      sdk::PreemptionSummary* summary,
                                      std::vector<std::string>* errors) const;
  // What the search for the cheapest set goes by.
  std::vector<UnitPrice> PricesOf(const std::vector<Unit>& units) const;
  // The cheapest set of a node; or why there is none.
  Verdict SelectVictims(const Offer& offer, sdk::DryRun& dry_run, PricedCandidate* found) const;
  void Count(const PricedCandidate& best) const {
    for (const Unit& unit : best.units) {
      const size_t type = static_cast<size_t>(unit.type);
      victims_[type]->Add(static_cast<double>(unit.pods.size()));
      work_lost_[type]->Add(static_cast<double>(unit.loss.work) / 1000);
    }
  }

  const Rules rules_;
  std::array<std::shared_ptr<sdk::Counter>, kNumTypes> victims_, work_lost_;
  sdk::DisruptionBudgets budgets_;
  // Pods are read in const calls; all calls come on one thread.
  mutable absl::flat_hash_map<const PodRecord*, KnownFacts> facts_;
  mutable sdk::MalformedValues malformed_{kName};
};

std::vector<Offer> CostAwarePreemptor::OffersOf(const sdk::Attempt& attempt,
                                                const sdk::DryRun& dry_run, absl::Time now,
                                                sdk::PreemptionSummary* summary,
                                                SparedCounts* spared) const {
  std::vector<Offer> offers;
  for (Slot slot : sdk::NodesToPreemptOn(attempt, dry_run)) {
    Offer offer;
    offer.slot = slot;
    for (PodRecord* pod : attempt.cluster().node(slot).pods()) {
      if (pod->pod.priority() >= attempt.pod().priority()) continue;
      const PodFacts& facts = FactsOf(*pod);
      const Judgement judgement = Judge(*pod, facts, rules_, now);
      if (judgement.spared != Spared::kNot) {
        ++(*spared)[static_cast<size_t>(judgement.spared)];
        continue;
      }
      Unit unit = {{pod}, facts.type, judgement.loss};
      const Price alone = {Violations(unit.pods), BeyondInference(unit), CostOf(unit),
                           unit.pods.size()};
      if (offer.units.empty() || alone < offer.at_least) offer.at_least = alone;
      offer.units.push_back(std::move(unit));
    }
    if (offer.units.empty()) {
      summary->Add(Verdict::Unresolvable("No preemption victims found for incoming pod"));
    } else {
      offers.push_back(std::move(offer));
    }
  }
  return offers;
}

std::vector<PricedCandidate> CostAwarePreemptor::TryOut(const std::vector<Offer>& offers,
                                                        sdk::DryRun& dry_run,
                                                        sdk::PreemptionSummary* summary,
                                                        std::vector<std::string>* errors) const {
  std::vector<size_t> order;
  for (size_t i = 0; i < offers.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return offers[a].at_least < offers[b].at_least; });
  std::vector<PricedCandidate> found;
  std::optional<Price> best;
  // What is done on one node does not depend on others: see DryRun on answers of other hosts.
  for (const size_t i : order) {
    if (found.size() >= kEnoughCandidates && !(offers[i].at_least < *best)) break;
    PricedCandidate candidate;
    candidate.position = i;
    Verdict verdict = SelectVictims(offers[i], dry_run, &candidate);
    dry_run.End();
    if (verdict.ok()) {
      if (!best || candidate.price < *best) best = candidate.price;
      found.push_back(std::move(candidate));
      continue;
    }
    if (!verdict.rejected()) errors->push_back(absl::StrJoin(verdict.reasons(), ", "));
    summary->Add(verdict);
  }
  std::sort(found.begin(), found.end(), [](const PricedCandidate& a, const PricedCandidate& b) {
    return std::tie(a.price, a.position) < std::tie(b.price, b.position);
  });
  return found;
}

std::vector<UnitPrice> CostAwarePreemptor::PricesOf(const std::vector<Unit>& units) const {
  std::vector<PodRecord*> pods;
  for (const Unit& unit : units) pods.insert(pods.end(), unit.pods.begin(), unit.pods.end());
  sdk::SortByImportance(&pods);
  const std::vector<bool> violated = budgets_.Violated(pods);
  std::vector<UnitPrice> prices;
  std::map<std::pair<WorkloadType, std::string>, int> kinds;
  for (const Unit& unit : units) {
    UnitPrice price = {BeyondInference(unit), CostOf(unit), unit.pods.size()};
    bool counted = false;
    for (PodRecord* pod : unit.pods) {
      const auto it = std::find(pods.begin(), pods.end(), pod);
      price.protected_by_budget |= violated[static_cast<size_t>(it - pods.begin())];
      counted |= budgets_.Count(pod->pod);
    }
    // Pods that a budget counts differ in whether their eviction is under way, and in when they
    // are charged.
    if (!counted && unit.pods.size() == 1) {
      const int next = static_cast<int>(kinds.size());
      price.kind =
          kinds.try_emplace({unit.type, WhatFiltersSee(unit.pods[0]->pod)}, next).first->second;
    }
    prices.push_back(price);
  }
  return prices;
}

Verdict CostAwarePreemptor::SelectVictims(const Offer& offer, sdk::DryRun& dry_run,
                                          PricedCandidate* found) const {
  dry_run.Begin(offer.slot);
  NodeTrials trials(&dry_run, &offer.units);
  const auto pods_of = [&](const UnitSet& set) {
    std::vector<PodRecord*> pods;
    for (size_t i = 0; i < set.size(); ++i) {
      if (!set[i]) continue;
      const std::vector<PodRecord*>& of_unit = offer.units[i].pods;
      pods.insert(pods.end(), of_unit.begin(), of_unit.end());
    }
    return pods;
  };
  const std::optional<CheapestSet> cheapest = FindCheapestSet(
      PricesOf(offer.units), rules_.search, [&](const UnitSet& set) { return trials.Fits(set); },
      [&](const UnitSet& set) { return Violations(pods_of(set)); },
      [&] { return trials.failed(); });
  if (!cheapest) return trials.verdict();
  std::vector<PodRecord*> victims = pods_of(cheapest->set);
  sdk::SortByImportance(&victims);
  found->candidate.slot = offer.slot;
  found->candidate.victims.assign(victims.begin(), victims.end());
  found->candidate.budget_violations = cheapest->price.budget_violations;
  found->price = cheapest->price;
  for (size_t i = 0; i < offer.units.size(); ++i) {
    if (cheapest->set[i]) found->units.push_back(offer.units[i]);
  }
  return Verdict::Success();
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1alpha1::POST_FILTER};
  sdk::DeclarePreemptionGate(&d);
  d.args_schema = Rules::Schema();
  for (const std::string& key : Annotations()) d.needed_fields.push_back(sdk::AnnotationField(key));
  d.metrics = {
      {kVictimsMetric,
       sdk::MetricType::kCounter,
       {"workload_type"},
       "Pods that were chosen to leave for others, by type of work: training, inference, other."},
      {kWorkLostMetric,
       sdk::MetricType::kCounter,
       {"workload_type"},
       "GPU-seconds of work that these had done since their last checkpoints, or since "
       "they started."}};
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<CostAwarePreemptor>(Rules::Read(context.args->root()), context.metrics);
  };
  return d;
}

}  // namespace outboard::cost_aware_preemptor
