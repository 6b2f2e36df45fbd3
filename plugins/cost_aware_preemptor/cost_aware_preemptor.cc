#include "plugins/cost_aware_preemptor/cost_aware_preemptor.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/disruption_budgets.h"
#include "plugin_host/sdk/group_preemption.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/preemption.h"
#include "plugin_host/sdk/run_facts/run_facts.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/cost_aware_preemptor/cheapest_set.h"
#include "plugins/cost_aware_preemptor/checkpoint_waiters.h"
#include "plugins/cost_aware_preemptor/gangs.h"
#include "plugins/cost_aware_preemptor/loss_metrics.h"
#include "plugins/cost_aware_preemptor/victim_rules.h"

namespace outboard::cost_aware_preemptor {
namespace {

using sdk::PodRecord;
using sdk::PreemptionCandidate;
using sdk::Slot;
using sdk::Verdict;
using sdk::WorkloadType;

constexpr char kName[] = "CostAwarePreemptor";
// The shim uses another candidate if the best is not available any more.
constexpr size_t kEnoughCandidates = 8;

// The set of all would be enough, but a part of a gang would stay.
constexpr char kOnlyParts[] = "Only parts of gangs would make room";

// An attempt that waits for other hosts' answers calls the plugin again with them. A checkpoint
// that was recent enough in the first call must count in the next.
struct AttemptMemory : sdk::AttemptState {
  absl::Time began;
  bool counted = false;
};

// A pod that may be evicted.
struct Victim {
  PodRecord* pod = nullptr;
  WorkloadType type = WorkloadType::kOther;
  Loss loss;
  bool counted = false;  // A PodDisruptionBudget counts it.
};

// A gang, for one preemptor.
struct GangOffer {
  size_t surplus = 0;
  bool whole = false;           // The whole gang may leave.
  std::vector<Victim> members;  // With `whole`: on all nodes.
  Price price;                  // Of `members`.
  bool awaits_checkpoint = false;
};

// A node with pods that may be evicted.
struct Offer {
  Slot slot = sdk::kNoSlot;
  std::vector<Victim> pods;
  std::vector<int> gang_of_pod;  // Index in `gangs`; -1: none.
  std::vector<const GangOffer*> gangs;
  Price at_least;  // A lower bound for all sets.
};

// Pods that were kept.
struct SparedPods {
  SparedCounts counts = {};
  int64_t of_gangs = 0;  // Members of gangs without surplus that may not leave as a whole.
  bool awaits_checkpoint = false;
};

struct PricedCandidate {
  PreemptionCandidate candidate;
  Price price;
  size_t position = 0;  // In node order.
  std::vector<Victim> victims;
};

// Tries sets of victims on a node. Gang members on other nodes stay during the trial: a dry run
// covers one node, and evicting pods elsewhere makes no room on it.
class NodeTrials {
 public:
  NodeTrials(sdk::DryRun* dry_run, const std::vector<Victim>* pods)
      : dry_run_(dry_run), pods_(pods), gone_(pods->size(), false) {}

  bool Fits(const UnitSet& set) {
    for (size_t i = 0; i < set.size(); ++i) {
      if (set[i] == gone_[i]) continue;
      PodRecord& pod = *(*pods_)[i].pod;
      if (!Keep(set[i] ? dry_run_->RemovePod(pod) : dry_run_->AddPod(pod))) return false;
      gone_[i] = set[i];
    }
    Verdict verdict = dry_run_->Filter();
    if (!first_) first_ = verdict;
    if (!verdict.ok() && !verdict.rejected()) return Keep(std::move(verdict));
    return verdict.ok();
  }
  // A plugin failed.
  bool failed() const { return failure_.has_value(); }
  // Why preemption does not help, or what failed.
  Verdict verdict() const {
    if (failure_) return *failure_;
    return first_->ok() ? Verdict::Unschedulable(kOnlyParts) : *first_;
  }

 private:
  bool Keep(Verdict verdict) {
    if (verdict.ok()) return true;
    failure_ = std::move(verdict);
    return false;
  }

  sdk::DryRun* const dry_run_;
  const std::vector<Victim>* const pods_;
  UnitSet gone_;
  std::optional<Verdict> first_, failure_;
};

class CostAwarePreemptor : public sdk::Plugin,
                           public sdk::PostFilterPlugin,
                           public sdk::GroupPostFilterPlugin,
                           public sdk::PreemptionGate,
                           public sdk::ClusterObserver {
 public:
  CostAwarePreemptor(Rules rules, const sdk::PluginContext& context)
      : rules_(std::move(rules)),
        pushes_(context.pushes),
        cluster_(context.cluster),
        metrics_(context.metrics),
        gangs_(kName, rules_.default_gang_size, rules_.jobs, context.cluster) {}

  Verdict PostFilter(const sdk::Attempt& attempt, sdk::DryRun& dry_run,
                     sdk::PostFilterAnswer* answer) const override {
    if (Verdict may = sdk::MayPreempt(attempt, dry_run); !may.ok()) return may;
    if (const std::string why = gangs_.WhyNotAlone(attempt.pod().record()); !why.empty()) {
      answer->clear_nomination = true;
      return sdk::SayPreemption(v1beta1::CODE_UNSCHEDULABLE, why);
    }
    if (attempt.score_state<AttemptMemory>() == nullptr)
      attempt.NewScoreState<AttemptMemory>().began = attempt.now();
    AttemptMemory& memory = *attempt.score_state<AttemptMemory>();
    sdk::PreemptionSummary summary;
    SparedPods spared;
    GangOffers gangs;
    const std::vector<Offer> offers =
        OffersOf(attempt, dry_run, memory.began, &gangs, &summary, &spared);
    std::vector<std::string> errors;
    std::vector<PricedCandidate> found = TryOut(offers, dry_run, &summary, &errors);
    const v1beta1::Pod& pod = attempt.pod().proto();
    if (found.empty() && spared.awaits_checkpoint) {
      waiters_.Add(pod);
    } else {
      waiters_.Remove(pod.uid());
    }
    if (found.empty() && !errors.empty())
      return sdk::SayPreemption(v1beta1::CODE_ERROR, sdk::JoinErrors(errors));
    if (found.empty()) {
      answer->clear_nomination = true;
      return sdk::SayPreemption(v1beta1::CODE_UNSCHEDULABLE,
                                absl::StrCat(summary.Text(attempt.cluster().node_order().size()),
                                             SparedText(spared.counts, spared.of_gangs, rules_)));
    }
    gangs_.Promise(found.front().candidate, pod.uid(), memory.began);
    if (!std::exchange(memory.counted, true)) Count(found.front(), memory.began);
    for (PricedCandidate& one : found) answer->candidates.push_back(std::move(one.candidate));
    return Verdict::Success();
  }

  Verdict PostFilterGroup(const sdk::Attempt& attempt, const sdk::GroupToPlace& group,
                          sdk::GroupDryRun& dry_run,
                          sdk::GroupPreemption* preemption) const override;

  void OnReset() override {
    budgets_.Clear();
    gangs_.Clear();
    runs_.Clear();
    facts_.clear();
    rules_.gpus.claims().Clear();
    waiters_.Clear();
    malformed_.Clear();
  }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    budgets_.OnObjectChanged(object);
    gangs_.SetObject(object);
    for (const std::string& uid : runs_.SetObject(object)) OwnerChanged(uid);
    if (rules_.gpus.claims().Set(object)) facts_.clear();
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    budgets_.OnObjectRemoved(object);
    gangs_.RemoveObject(object);
    for (const std::string& uid : runs_.RemoveObject(object)) OwnerChanged(uid);
    if (rules_.gpus.claims().Remove(object)) facts_.clear();
  }
  void OnPodChanged(const PodRecord& pod) override {
    gangs_.SetPod(pod);
    runs_.SetPod(pod.pod);
    if (waiters_.empty()) return;
    if (!pod.on_node()) {
      if (pod.pod.deletion_unix_seconds() != 0) waiters_.Remove(pod.pod.uid());
      return;
    }
    waiters_.Remove(pod.pod.uid());
    // A pod that was never considered was not kept for any preemptor.
    const auto known = facts_.find(&pod);
    if (known == facts_.end()) return;
    const std::optional<absl::Time> before = known->second.facts.run.NewestCheckpoint();
    const std::optional<absl::Time> after = FactsOf(pod).run.NewestCheckpoint();
    if (after && (!before || *after > *before)) waiters_.OnCheckpoint(pod.pod.priority());
  }
  void OnPodRemoved(const PodRecord& pod) override {
    gangs_.RemovePod(pod);
    runs_.RemovePod(pod.pod);
    waiters_.Remove(pod.pod.uid());
    facts_.erase(&pod);
    if (malformed_.warned() > 0)
      malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }
  void OnTick(absl::Time now) override {
    if (const std::vector<std::string> due = waiters_.TakeDue(now); !due.empty())
      pushes_->Activate(due);
  }

 private:
  struct KnownFacts {
    uint64_t generation = 0;
    PodFacts facts;
    bool stale = false;
  };
  // State of one attempt: the gangs considered, and the gang of each member.
  struct GangOffers {
    std::vector<std::unique_ptr<GangOffer>> all;
    absl::flat_hash_map<const PodRecord*, const GangOffer*> by_member;
  };

  // An owner of the pod says something else now.
  void OwnerChanged(const std::string& uid) {
    const auto known = facts_.find(cluster_.FindPod(uid));
    if (known != facts_.end()) known->second.stale = true;
  }
  const PodFacts& FactsOf(const PodRecord& pod) const {
    const auto [it, is_new] = facts_.try_emplace(&pod);
    if (is_new || it->second.stale || it->second.generation != pod.generation)
      it->second = {pod.generation, ReadFacts(pod, rules_, runs_, &malformed_)};
    return it->second.facts;
  }

  bool BeyondInference(const Victim& victim) const {
    return rules_.inference_first && victim.type != WorkloadType::kInference;
  }
  // Not negative; in milli-GPU-seconds.
  static int64_t CostOf(const Victim& victim) { return victim.loss.work + victim.loss.restart; }

  // Counts violations with the most important victim first: the order in which budgets are charged.
  int Violations(const std::vector<Victim>& victims) const {
    std::vector<PodRecord*> pods;
    for (const Victim& victim : victims) {
      if (victim.counted) pods.push_back(victim.pod);
    }
    if (pods.empty()) return 0;
    sdk::SortByImportance(&pods);
    const std::vector<bool> violated = budgets_.Violated(pods);
    return static_cast<int>(std::count(violated.begin(), violated.end(), true));
  }
  Price PriceOfAll(const std::vector<Victim>& victims) const {
    Price price;
    price.budget_violations = Violations(victims);
    for (const Victim& victim : victims) {
      price.beyond_inference |= BeyondInference(victim);
      price.cost += CostOf(victim);
    }
    price.victims = victims.size();
    return price;
  }

  // Fills `victim`; or returns why the pod is kept.
  Spared AssessVictim(PodRecord* pod, absl::Time now, Victim* victim) const {
    const PodFacts& facts = FactsOf(*pod);
    const Assessment assessment = Assess(*pod, facts, rules_, now);
    *victim = {pod, facts.type, assessment.loss, budgets_.Count(pod->pod)};
    return assessment.spared;
  }
  // Null: the pod belongs to no gang, or is already being deleted.
  const GangOffer* GangOfferOf(const sdk::Attempt& attempt, const PodRecord& pod, absl::Time now,
                               GangOffers* offers) const;
  std::vector<Offer> OffersOf(const sdk::Attempt& attempt, const sdk::DryRun& dry_run,
                              absl::Time now, GangOffers* gangs, sdk::PreemptionSummary* summary,
                              SparedPods* spared) const;
  // Returns candidates, best first: the best of all, and some more.
  std::vector<PricedCandidate> TryOut(const std::vector<Offer>& offers, sdk::DryRun& dry_run,
                                      sdk::PreemptionSummary* summary,
                                      std::vector<std::string>* errors) const;
  // The input of the search for the cheapest set.
  Prices PricesOf(const Offer& offer) const;
  // The node's pods in the set, and the other members of gangs that leave as a whole.
  static std::vector<Victim> VictimsOf(const Offer& offer, const Prices& prices,
                                       const UnitSet& set);
  // Finds the cheapest set of a node; or returns why there is none.
  Verdict SelectVictims(const Offer& offer, sdk::DryRun& dry_run, PricedCandidate* found) const;
  void Count(const PricedCandidate& best, absl::Time now) const {
    for (const Victim& victim : best.victims)
      metrics_.Count(FactsOf(*victim.pod), victim.loss, now);
  }

  const Rules rules_;
  sdk::ShimNotifier* const pushes_;
  const sdk::ClusterView cluster_;
  const LossMetrics metrics_;
  sdk::RunFactsReader runs_;
  sdk::DisruptionBudgets budgets_;
  // Const calls change these; all calls are on one thread.
  mutable Gangs gangs_;
  mutable absl::flat_hash_map<const PodRecord*, KnownFacts> facts_;
  mutable CheckpointWaiters waiters_;
  mutable sdk::MalformedValues malformed_{kName};
};

const GangOffer* CostAwarePreemptor::GangOfferOf(const sdk::Attempt& attempt, const PodRecord& pod,
                                                 absl::Time now, GangOffers* offers) const {
  if (const auto known = offers->by_member.find(&pod); known != offers->by_member.end())
    return known->second;
  const std::optional<RunningGang> gang =
      gangs_.GangOf(pod, attempt.pod().proto().uid(), attempt.cluster(), now);
  if (!gang) return offers->by_member[&pod] = nullptr;
  auto offer = std::make_unique<GangOffer>();
  offer->surplus = gang->surplus;
  offer->whole = true;
  for (PodRecord* member : gang->members) {
    offers->by_member[member] = offer.get();
    if (member->pod.priority() >= attempt.pod().priority()) {
      offer->whole = false;
      continue;
    }
    const Spared spared = AssessVictim(member, now, &offer->members.emplace_back());
    offer->whole &= spared == Spared::kNot;
    offer->awaits_checkpoint |= WantsCheckpoint(spared);
  }
  if (offer->whole) offer->price = PriceOfAll(offer->members);
  return offers->all.emplace_back(std::move(offer)).get();
}

// Evicts pods in order of cost until the whole group fits. Gangs leave as a whole, even if they
// have surplus members.
Verdict CostAwarePreemptor::PostFilterGroup(const sdk::Attempt& attempt,
                                            const sdk::GroupToPlace& group,
                                            sdk::GroupDryRun& dry_run,
                                            sdk::GroupPreemption* preemption) const {
  if (Verdict may = sdk::MayPreemptForGroup(attempt, group); !may.ok()) return may;
  std::vector<std::pair<Price, std::vector<Victim>>> offers;
  GangOffers gangs;
  SparedPods spared;
  for (const Slot slot : attempt.cluster().node_order()) {
    for (PodRecord* pod : attempt.cluster().node(slot).pods()) {
      if (pod->pod.priority() >= attempt.pod().priority()) continue;
      Victim victim;
      const Spared why = AssessVictim(pod, attempt.now(), &victim);
      if (why != Spared::kNot) ++spared.counts[static_cast<size_t>(why)];
      spared.awaits_checkpoint |= WantsCheckpoint(why);
      const GangOffer* gang =
          FactsOf(*pod).grouped ? GangOfferOf(attempt, *pod, attempt.now(), &gangs) : nullptr;
      if (gang == nullptr && why == Spared::kNot)
        offers.push_back({PriceOfAll({victim}), {victim}});
      if (gang == nullptr || gang->members.empty() || gang->members.front().pod != pod) continue;
      if (gang->whole) {
        offers.emplace_back(gang->price, gang->members);
      } else {
        spared.of_gangs += static_cast<int64_t>(gang->members.size());
      }
    }
  }
  std::stable_sort(offers.begin(), offers.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<sdk::VictimUnit> units(offers.size());
  for (size_t i = 0; i < offers.size(); ++i) {
    for (const Victim& victim : offers[i].second) units[i].pods.push_back(victim.pod);
  }
  const std::optional<sdk::Room> room = sdk::MakeRoom(units, dry_run);
  if (!room) {
    if (spared.awaits_checkpoint) waiters_.Add(attempt.pod().proto());
    preemption->clear_nomination = true;
    return sdk::SayPreemption(
        v1beta1::CODE_UNSCHEDULABLE,
        absl::StrCat("the group does not fit even if all candidates are evicted.",
                     SparedText(spared.counts, spared.of_gangs, rules_)));
  }
  if (Verdict split = sdk::SplitVictims(*room, units, preemption); !split.ok()) return split;
  PricedCandidate leaving;
  for (const size_t unit : room->leaving) {
    for (const Victim& victim : offers[unit].second) leaving.victims.push_back(victim);
  }
  preemption->budget_violations = Violations(leaving.victims);
  leaving.candidate.victims = preemption->victims;
  leaving.candidate.companions = preemption->companions;
  gangs_.Promise(leaving.candidate, attempt.pod().proto().uid(), attempt.now());
  Count(leaving, attempt.now());
  return Verdict::Success();
}

std::vector<Offer> CostAwarePreemptor::OffersOf(const sdk::Attempt& attempt,
                                                const sdk::DryRun& dry_run, absl::Time now,
                                                GangOffers* gangs, sdk::PreemptionSummary* summary,
                                                SparedPods* spared) const {
  const std::optional<sdk::GroupRef> own_group = sdk::GroupOf(attempt.pod().proto());
  std::vector<Offer> offers;
  for (Slot slot : sdk::NodesToPreemptOn(attempt, dry_run)) {
    Offer offer;
    offer.slot = slot;
    for (PodRecord* pod : attempt.cluster().node(slot).pods()) {
      if (pod->pod.priority() >= attempt.pod().priority()) continue;
      Victim victim;
      if (const Spared why = AssessVictim(pod, now, &victim); why != Spared::kNot) {
        ++spared->counts[static_cast<size_t>(why)];
        spared->awaits_checkpoint |= WantsCheckpoint(why);
        continue;
      }
      const bool grouped = FactsOf(*pod).grouped;
      const GangOffer* gang = grouped ? GangOfferOf(attempt, *pod, now, gangs) : nullptr;
      if (gang != nullptr && !gang->whole) spared->awaits_checkpoint |= gang->awaits_checkpoint;
      const bool would_break = gang != nullptr && gang->surplus == 0 && !gang->whole;
      // A pod never evicts members of its own group.
      if (would_break || (grouped && own_group && sdk::GroupOf(pod->pod)->key == own_group->key)) {
        ++spared->of_gangs;
        continue;
      }
      const Price alone =
          gang != nullptr && gang->surplus == 0 ? gang->price : PriceOfAll({victim});
      if (offer.pods.empty() || alone < offer.at_least) offer.at_least = alone;
      offer.pods.push_back(victim);
      int position = -1;
      if (gang != nullptr) {
        const auto it = std::find(offer.gangs.begin(), offer.gangs.end(), gang);
        position = static_cast<int>(it - offer.gangs.begin());
        if (it == offer.gangs.end()) offer.gangs.push_back(gang);
      }
      offer.gang_of_pod.push_back(position);
    }
    if (offer.pods.empty()) {
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
  // Nodes are independent of each other: see DryRun about the answers of other hosts.
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

Prices CostAwarePreemptor::PricesOf(const Offer& offer) const {
  std::vector<PodRecord*> pods;
  for (const Victim& victim : offer.pods) pods.push_back(victim.pod);
  sdk::SortByImportance(&pods);
  const std::vector<bool> violated = budgets_.Violated(pods);
  Prices prices;
  std::map<std::tuple<WorkloadType, int, std::string>, int> kinds;
  for (size_t i = 0; i < offer.pods.size(); ++i) {
    const Victim& victim = offer.pods[i];
    UnitPrice price = {BeyondInference(victim), CostOf(victim)};
    price.gang = offer.gang_of_pod[i];
    const auto it = std::find(pods.begin(), pods.end(), victim.pod);
    price.protected_by_budget = violated[static_cast<size_t>(it - pods.begin())];
    // Pods that a budget counts differ: in the state of their eviction, and in the order in which
    // they are charged.
    if (!victim.counted) {
      const int next = static_cast<int>(kinds.size());
      price.kind =
          kinds.try_emplace({victim.type, price.gang, WhatFiltersSee(victim.pod->pod)}, next)
              .first->second;
    }
    prices.units.push_back(price);
  }
  for (const GangOffer* gang : offer.gangs) {
    GangPrice price;
    price.surplus = gang->surplus;
    price.whole = gang->whole;
    for (const Victim& member : gang->members) {
      if (!gang->whole || member.pod->slot == offer.slot) continue;
      price.beyond_inference |= BeyondInference(member);
      price.cost += CostOf(member);
      ++price.victims;
    }
    prices.gangs.push_back(price);
  }
  return prices;
}

std::vector<Victim> CostAwarePreemptor::VictimsOf(const Offer& offer, const Prices& prices,
                                                  const UnitSet& set) {
  std::vector<Victim> victims;
  for (size_t i = 0; i < offer.pods.size(); ++i) {
    if (set[i]) victims.push_back(offer.pods[i]);
  }
  const std::vector<bool> whole = WholeGangs(prices, set);
  for (size_t g = 0; g < whole.size(); ++g) {
    if (!whole[g]) continue;
    for (const Victim& member : offer.gangs[g]->members) {
      if (member.pod->slot != offer.slot) victims.push_back(member);
    }
  }
  return victims;
}

Verdict CostAwarePreemptor::SelectVictims(const Offer& offer, sdk::DryRun& dry_run,
                                          PricedCandidate* found) const {
  dry_run.Begin(offer.slot);
  NodeTrials trials(&dry_run, &offer.pods);
  const Prices prices = PricesOf(offer);
  const std::optional<CheapestSet> cheapest = FindCheapestSet(
      prices, rules_.search, [&](const UnitSet& set) { return trials.Fits(set); },
      [&](const UnitSet& set) { return Violations(VictimsOf(offer, prices, set)); },
      [&] { return trials.failed(); });
  if (!cheapest) return trials.verdict();
  found->victims = VictimsOf(offer, prices, cheapest->set);
  // The pod fits as it is: evicting pods would not help.
  if (found->victims.empty())
    return Verdict::Unresolvable("No preemption victims found for incoming pod");
  std::vector<PodRecord*> here, elsewhere;
  for (const Victim& victim : found->victims)
    (victim.pod->slot == offer.slot ? here : elsewhere).push_back(victim.pod);
  sdk::SortByImportance(&here);
  sdk::SortByImportance(&elsewhere);
  found->candidate.slot = offer.slot;
  found->candidate.victims.assign(here.begin(), here.end());
  found->candidate.companions.assign(elsewhere.begin(), elsewhere.end());
  found->candidate.budget_violations = cheapest->price.budget_violations;
  found->price = cheapest->price;
  return Verdict::Success();
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_POST_FILTER};
  sdk::DeclarePreemptionGate(&d);
  d.args_schema = Rules::Schema();
  for (const std::string& key : sdk::RunAnnotations())
    d.needed_fields.push_back(sdk::AnnotationField(key));
  for (std::string& field : sdk::GroupAnnotationFields())
    d.needed_fields.push_back(std::move(field));
  d.declared_resources = sdk::PodGroupResources();
  for (v1beta1::DeclaredResource& resource : sdk::RunOwnerResources())
    d.declared_resources.push_back(std::move(resource));
  sdk::DeclareGpuClaims(&d.declared_resources);
  d.metrics = LossMetrics::Specs();
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<CostAwarePreemptor>(Rules::Read(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::cost_aware_preemptor
