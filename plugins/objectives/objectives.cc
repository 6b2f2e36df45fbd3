#include "plugins/objectives/objectives.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/known_verdicts.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_sets.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/prometheus/node_metrics.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugins/objectives/args.h"
#include "plugins/objectives/node_costs.h"
#include "plugins/objectives/places.h"
#include "plugins/objectives/wishes.h"

namespace outboard::objectives {
namespace {

constexpr char kName[] = "Objectives";
constexpr char kMetricPrefix[] = "outboard_objectives_metric";

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string PodName(const v1beta1::Pod& pod) {
  return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
}

// The pod's bounds, resolved against the cluster.
struct BoundsState : sdk::AttemptState {
  struct Licence {
    std::string name;
    int64_t need = 0;
    int64_t total = 0;
    int64_t used = 0;  // By other pods.
  };

  Bounds bounds;
  std::vector<uint32_t> regions;  // Ids of bounds.regions among label values.
  std::vector<Holders> data;      // One per entry of bounds.data.
  std::vector<Licence> licences;
  // The verdict on licences; the same for every node.
  sdk::Verdict licence_verdict;
  // Cached verdicts: by region, by cost, and one set per entry of bounds.data.
  sdk::KnownVerdicts<uint32_t> region_verdicts;
  sdk::KnownVerdicts<double> cost_verdicts;
  std::vector<sdk::Verdict> data_verdicts;

  std::unique_ptr<sdk::AttemptState> Clone() const override {
    return std::make_unique<BoundsState>(*this);
  }
  void CheckLicences() {
    licence_verdict = sdk::Verdict::Success();
    for (const Licence& licence : licences) {
      const int64_t available = std::max<int64_t>(0, licence.total - licence.used);
      if (licence.need <= available) continue;
      const std::string reason = absl::StrCat("insufficient licences of ", licence.name, ": need ",
                                              licence.need, ", available ", available);
      // Evicting pods helps only if the cluster has enough licences in total.
      licence_verdict = licence.need > licence.total ? sdk::Verdict::Unresolvable(reason)
                                                     : sdk::Verdict::Unschedulable(reason);
      return;
    }
  }
};

// The pod's preferences, resolved against the cluster.
struct PreferencesState : sdk::AttemptState {
  Weights weights;
  Targets pods;
  std::vector<Holders> data;  // Only data that a node holds.
  int64_t cpu_millis = 0;
  int64_t gpus = 0;
};

class Objectives : public sdk::Plugin,
                   public sdk::PreFilterPlugin,
                   public sdk::FilterPlugin,
                   public sdk::PreScorePlugin,
                   public sdk::ScorePlugin,
                   public sdk::QueueingHintPlugin,
                   public sdk::ClusterObserver {
 public:
  Objectives(Args args, const prometheus::MakeMetricSource& make_source,
             const sdk::PluginContext& context)
      : args_(std::move(args)),
        profile_(context.profile),
        cluster_(context.cluster),
        places_(args_.levels),
        metrics_(args_.metrics, make_source, context, kName, kMetricPrefix) {}

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    Bounds bounds = ReadBounds(attempt.pod().proto(), args_.levels, nullptr);
    if (!bounds.any() && !metrics_.has_bounds()) return sdk::Verdict::Skip();
    if (bounds.latest_start && attempt.now() > *bounds.latest_start) {
      return sdk::Verdict::Unresolvable(
          absl::StrCat("latest start ", TimeText(*bounds.latest_start), " is past"));
    }
    auto& state = attempt.NewFilterState<BoundsState>();
    state.bounds = std::move(bounds);
    outside_.Follow(attempt.cluster().nodes());
    dear_.Follow(attempt.cluster().nodes());
    for (const std::string& region : state.bounds.regions)
      state.regions.push_back(attempt.cluster().nodes().label_values.Find(region));
    for (const std::string& data : state.bounds.data) {
      state.data.push_back(places_.HoldersOf(data));
      state.data_verdicts.push_back(TooFarFrom(data, *state.data.back(), state.bounds));
    }
    for (const auto& [name, need] : state.bounds.licences)
      state.licences.push_back({name, need, AmountOf(args_.licences, name), AmountOf(used_, name)});
    state.CheckLicences();
    return sdk::Verdict::Success();
  }
  sdk::Verdict AddPod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                      const sdk::NodeView&) const override {
    return CountLicences(attempt, pod, 1);
  }
  sdk::Verdict RemovePod(const sdk::Attempt& attempt, const sdk::PodView& pod,
                         const sdk::NodeView&) const override {
    return CountLicences(attempt, pod, -1);
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    auto* state = attempt.filter_state<BoundsState>();
    if (state == nullptr) {  // The profile enables filter, but not preFilter.
      sdk::PreFilterResult all;
      const sdk::Verdict verdict = PreFilter(attempt, &all);
      if (verdict.rejected()) block.ForEach([&](int i, sdk::Slot) { sink.RejectWith(i, verdict); });
      if (!verdict.ok()) return;
      state = attempt.filter_state<BoundsState>();
    }
    FilterNodes(attempt.cluster(), block, state, sink);
    metrics_.Filter(attempt, block, sink);
    if (!state->licence_verdict.ok()) sink.RejectAll(block.candidates, state->licence_verdict);
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const Preferences preferences = ReadPreferences(pod, args_.weights, nullptr);
    if (!preferences.weights.any()) return sdk::Verdict::Skip();
    auto& state = attempt.NewScoreState<PreferencesState>();
    state.weights = preferences.weights;
    if (!preferences.near_pods.empty()) AddNearPods(attempt, preferences.near_pods, &state.pods);
    for (const std::string& data : preferences.data) {
      Holders holders = places_.HoldersOf(data);
      if (holders->total > 0) state.data.push_back(std::move(holders));
    }
    state.cpu_millis = sdk::ComputePodRequests(pod).cpu_millis;
    state.gpus = args_.gpus.DemandOf(pod);
    return sdk::Verdict::Success();
  }

  // In 0..100 without normalisation, so that scores of different pods can be compared.
  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    if (attempt.score_state<PreferencesState>() == nullptr && PreScore(attempt, nodes).skip()) {
      // The profile enables score, but not preScore.
      std::fill(raw.begin(), raw.end(), 0);
      return sdk::Verdict::Success();
    }
    const auto& state = *attempt.score_state<PreferencesState>();
    metrics_.Look(attempt.now());
    const Weighing weighing = WeighingOf(attempt, state, nodes);
    const double scale = weighing.sum() > 0 ? 100 / weighing.sum() : 0;
    AddTerms(weighing, state, attempt.cluster().nodes(), nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      // 1e-9: a decimal integer may be slightly less in binary.
      const auto score = static_cast<int64_t>(scale * sums_[i] + 1e-9);
      raw[i] = std::clamp<int64_t>(score, 0, sdk::kMaxScore);
    }
    if (VLOG_IS_ON(4)) Log(attempt, weighing, state, nodes, raw);
    return sdk::Verdict::Success();
  }

  // The share of each term that counts.
  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    const auto* state = attempt.score_state<PreferencesState>();
    if (state == nullptr) return {};
    const Weighing weighing = WeighingOf(attempt, *state, nodes);
    if (weighing.sum() <= 0) return {};
    std::vector<std::vector<sdk::ScoreTerm>> explained;
    for (const sdk::Slot slot : nodes) {
      const Terms terms = TermsOf(weighing, *state, attempt.cluster().nodes(), slot);
      std::vector<sdk::ScoreTerm>& of_node = explained.emplace_back();
      const auto add = [&](const char* name, double weight, double term) {
        if (weight > 0) of_node.push_back({name, 100 * weight * term / weighing.sum()});
      };
      add("cost", weighing.cost, terms.cost);
      add("distance", weighing.distance, terms.distance);
      add("gpu", weighing.gpu, terms.gpu);
      add("cpu", weighing.cpu, terms.cpu);
    }
    ForEachMetric(weighing, nodes, [&](size_t metric, double weight) {
      for (size_t i = 0; i < nodes.size(); ++i)
        explained[i].push_back(
            {metrics_.options(metric).name, 100 * weight * metric_terms_[i] / weighing.sum()});
    });
    return explained;
  }

  // Every node event helps: the node may be cheap enough, or hold data that makes others near. Of
  // pod events, only released licences and the pod's own update help.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.old_pod == nullptr && change.new_pod == nullptr) return sdk::Hint::kQueue;
    if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    if (change.old_pod == nullptr) return sdk::Hint::kSkip;
    const Licences wanted = ReadLicences(pod.proto(), nullptr);
    const Licences left =
        change.new_pod == nullptr ? Licences() : ReadLicences(*change.new_pod, nullptr);
    for (const auto& [name, count] : ReadLicences(*change.old_pod, nullptr)) {
      if (AmountIn(wanted, name) > 0 && AmountIn(left, name) < count) return sdk::Hint::kQueue;
    }
    return sdk::Hint::kSkip;
  }

  void OnReset() override {
    metrics_.Reset();
    costs_.Reset();
    dear_.Forget();
    region_.clear();
    outside_.Forget();
    places_.Reset();
    used_.clear();
    warned_at_.clear();
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    metrics_.NodeChanged(slot);
    if (slot >= region_.size()) region_.resize(slot + 1, sdk::StringTable::kNone);
    const sdk::NodeTable& table = cluster_.nodes();
    const uint32_t region_key = table.label_keys.Find(args_.region_label);
    const uint32_t region = region_key == sdk::StringTable::kNone
                                ? sdk::StringTable::kNone
                                : cluster_.node(slot).LabelValueId(region_key);
    if (std::exchange(region_[slot], region) != region) outside_.Forget();
    const v1beta1::Node& node = cluster_.node(slot).proto();
    const std::string object = absl::StrCat("node ", node.name());
    double cost_of_node = NodeCosts::kUnknown;
    if (const std::string* text = sdk::FindValue(node.labels(), args_.cost_label)) {
      const std::optional<double> cost = sdk::ParseAmount(*text);
      if (!cost) malformed_.Warn(object, args_.cost_label, *text, "a decimal number");
      cost_of_node = cost.value_or(NodeCosts::kUnknown);
    }
    if (costs_.Set(slot, cost_of_node)) dear_.Forget();
    places_.Set(slot, node.labels(), object, &malformed_);
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    places_.Clear(slot);
    metrics_.NodeRemoved(slot);
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot) override {
    metrics_.ForgetPod(pod.pod.uid());
    for (const auto& [name, count] : ReadLicences(pod.pod, nullptr)) used_[name] += count;
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot) override {
    for (const auto& [name, count] : ReadLicences(pod.pod, nullptr)) {
      const auto used = used_.find(name);
      if (used != used_.end() && (used->second -= count) == 0) used_.erase(used);
    }
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    if (pod.pod.scheduler_name() != profile_) return;
    // Parses only to warn, so once per state of the pod.
    if (std::exchange(warned_at_[&pod], pod.generation) == pod.generation) return;
    ReadPreferences(pod.pod, args_.weights, &malformed_);
    ReadBounds(pod.pod, args_.levels, &malformed_);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    warned_at_.erase(&pod);
    metrics_.ForgetPod(pod.pod.uid());
    if (pod.pod.scheduler_name() == profile_) malformed_.Forget(PodName(pod.pod));
  }
  void OnTick(absl::Time now) override {
    metrics_.Look(now);
    metrics_.ShowFigures(now);
  }

 private:
  static int64_t AmountOf(const absl::flat_hash_map<std::string, int64_t>& amounts,
                          const std::string& name) {
    const auto it = amounts.find(name);
    return it == amounts.end() ? 0 : it->second;
  }
  static int64_t AmountIn(const Licences& licences, const std::string& name) {
    for (const auto& [known, count] : licences) {
      if (known == name) return count;
    }
    return 0;
  }

  static sdk::Verdict CountLicences(const sdk::Attempt& attempt, const sdk::PodView& pod,
                                    int64_t sign) {
    auto* state = attempt.filter_state<BoundsState>();
    if (state == nullptr || state->licences.empty()) return sdk::Verdict::Success();
    const Licences changed = ReadLicences(pod.proto(), nullptr);
    for (BoundsState::Licence& licence : state->licences)
      licence.used += sign * AmountIn(changed, licence.name);
    state->CheckLicences();
    return sdk::Verdict::Success();
  }

  // Checks all bounds except licences; evicting pods helps with none of them.
  void FilterNodes(const sdk::ClusterView& cluster, const sdk::NodeBlock& block, BoundsState* state,
                   sdk::FilterSink& sink) const {
    if (!state->regions.empty()) {
      const auto is_outside = [&](sdk::Slot slot) {
        const std::vector<uint32_t>& regions = state->regions;
        return region_[slot] == sdk::StringTable::kNone ||
               std::find(regions.begin(), regions.end(), region_[slot]) == regions.end();
      };
      sdk::KnownVerdicts<uint32_t>::Block rejections(&state->region_verdicts, &sink);
      const uint64_t outside = outside_.Bits(state->regions, block, is_outside);
      sdk::NodeBlock{block.slots, block.candidates & outside}.ForEach([&](int i, sdk::Slot slot) {
        const uint32_t region = region_[slot];
        rejections.Reject(i, region, [&] { return WrongRegion(cluster, region, state->bounds); });
      });
    }
    if (const std::optional<double> highest = state->bounds.highest_cost) {
      const auto is_dear = [&](sdk::Slot slot) {
        return costs_.At(slot) == NodeCosts::kUnknown || costs_.At(slot) > *highest;
      };
      sdk::KnownVerdicts<double>::Block rejections(&state->cost_verdicts, &sink);
      const uint64_t dear = dear_.Bits(*highest, block, is_dear);
      sdk::NodeBlock{block.slots, block.candidates & dear}.ForEach([&](int i, sdk::Slot slot) {
        const double cost = costs_.At(slot);
        if (cost == NodeCosts::kUnknown) return sink.Reject(i, unknown_cost_);
        rejections.Reject(i, cost, [&] {
          return sdk::Verdict::Unresolvable(
              absl::StrCat("node costs ", cost, ", highest cost ", *highest));
        });
      });
    }
    for (size_t k = 0; k < state->data.size(); ++k) {
      uint64_t too_far = 0;
      block.ForEach([&](int i, sdk::Slot slot) {
        if (!places_.IsWithin(*state->data[k], slot, *state->bounds.data_within))
          too_far |= uint64_t{1} << i;
      });
      sink.RejectAll(too_far, state->data_verdicts[k]);
    }
  }
  sdk::Verdict WrongRegion(const sdk::ClusterView& cluster, uint32_t region,
                           const Bounds& bounds) const {
    const std::string where =
        region == sdk::StringTable::kNone
            ? std::string("no region")
            : absl::StrCat("region ", cluster.nodes().label_values.Text(region));
    return sdk::Verdict::Unresolvable(
        absl::StrCat("node is in ", where, ", allowed: ", absl::StrJoin(bounds.regions, ", ")));
  }
  sdk::Verdict TooFarFrom(const std::string& data, const Targets& holders,
                          const Bounds& bounds) const {
    if (holders.total == 0)
      return sdk::Verdict::Unresolvable(absl::StrCat("no node holds data ", data));
    const size_t level = *bounds.data_within;
    return sdk::Verdict::Unresolvable(
        level == 0
            ? absl::StrCat("node does not hold data ", data)
            : absl::StrCat("node is not in the ", args_.levels[level - 1], " of data ", data));
  }

  // Visits every pod of the cluster; only pods with the annotation pay this cost.
  void AddNearPods(const sdk::Attempt& attempt, const Pairs& labels, Targets* targets) const {
    const absl::string_view ns = attempt.pod().namespace_name();
    for (const auto& entry : attempt.cluster().pods()) {
      const auto& pod = *entry.second;
      if (!pod.on_node() || pod.pod.namespace_() != ns) continue;
      const bool matches = std::all_of(labels.begin(), labels.end(), [&pod](const auto& label) {
        const std::string* value = sdk::FindValue(pod.pod.labels(), label.first);
        return value != nullptr && *value == label.second;
      });
      if (matches) places_.Add(pod.slot, targets);
    }
  }

  struct Terms {
    double cost = 0, distance = 0, gpu = 0, cpu = 0;  // Each in 0..1.
  };
  // Weights of the terms in an attempt; 0 for a term that does not apply.
  struct Weighing {
    double cost = 0, distance = 0, gpu = 0, cpu = 0;
    double median_cost = 0;
    sdk::GpuColumns gpus;
    absl::Time now = {};
    std::vector<double> metrics = {};
    double sum() const {
      return std::accumulate(metrics.begin(), metrics.end(), cost + distance + gpu + cpu);
    }
  };
  Weighing WeighingOf(const sdk::Attempt& attempt, const PreferencesState& state,
                      absl::Span<const sdk::Slot> nodes) const {
    const std::optional<double> median = costs_.Median(nodes);
    Weighing weighing{.gpus = args_.gpus.ColumnsOf(attempt.cluster())};
    if (median) weighing.cost = state.weights.cost;
    weighing.median_cost = median.value_or(0);
    if (state.pods.total > 0 || !state.data.empty()) weighing.distance = state.weights.distance;
    if (state.gpus > 0) weighing.gpu = state.weights.gpu;
    weighing.cpu = state.weights.cpu;
    weighing.now = attempt.now();
    for (size_t metric = 0; metric < metrics_.size(); ++metric) {
      const double weight = state.weights.metrics[metric].second;
      const bool counts = weight > 0 && metrics_.HasValues(metric, attempt.now(), nodes);
      weighing.metrics.push_back(counts ? weight : 0);
    }
    return weighing;
  }
  void Log(const sdk::Attempt& attempt, const Weighing& weighing, const PreferencesState& state,
           absl::Span<const sdk::Slot> nodes, absl::Span<const int64_t> scores) const {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    std::vector<std::string> metrics(nodes.size());
    ForEachMetric(weighing, nodes, [&](size_t metric, double weight) {
      for (size_t i = 0; i < nodes.size(); ++i)
        absl::StrAppend(&metrics[i], " + ", metrics_.options(metric).name, " (", metric_terms_[i],
                        "·", weight, ")");
    });
    for (size_t i = 0; i < nodes.size(); ++i) {
      const Terms terms = TermsOf(weighing, state, table, nodes[i]);
      VLOG(4) << kName << ": node " << table.nodes[nodes[i]].name() << " pod "
              << attempt.pod().uid() << ": cost (" << terms.cost << "·" << weighing.cost
              << ") + distance (" << terms.distance << "·" << weighing.distance << ") + gpu ("
              << terms.gpu << "·" << weighing.gpu << ") + cpu (" << terms.cpu << "·" << weighing.cpu
              << ")" << metrics[i] << " over " << weighing.sum() << " = " << scores[i] << " of 100";
    }
  }
  Terms TermsOf(const Weighing& weighing, const PreferencesState& state,
                const sdk::NodeTable& table, sdk::Slot slot) const {
    Terms terms;
    if (weighing.cost > 0) terms.cost = NodeCosts::Term(costs_.At(slot), weighing.median_cost);
    if (weighing.distance > 0) terms.distance = DistanceTerm(state, slot);
    if (weighing.gpu > 0)
      terms.gpu =
          UseTerm(weighing.gpus.Requested(slot) + state.gpus, weighing.gpus.Allocatable(slot));
    terms.cpu = UseTerm(table.requested_cpu[slot] + state.cpu_millis, table.allocatable_cpu[slot]);
    return terms;
  }

  // Writes each node's sum of weighted terms into sums_, one term for all nodes at a time; skips
  // terms with weight 0. `nodes` must be the nodes of the weighing.
  void AddTerms(const Weighing& weighing, const PreferencesState& state,
                const sdk::NodeTable& table, absl::Span<const sdk::Slot> nodes) const {
    sums_.assign(nodes.size(), 0);
    if (weighing.cost > 0) {
      costs_.WeighTerms(nodes, weighing.median_cost, weighing.cost, absl::MakeSpan(sums_));
    }
    if (weighing.distance > 0) AddDistanceTerms(weighing.distance, state, nodes);
    if (weighing.gpu > 0) {
      const sdk::GpuColumns& gpus = weighing.gpus;
      const auto add = [&](const auto& requested, const auto& allocatable) {
        AddUseTerms(weighing.gpu, state.gpus, nodes, requested, allocatable);
      };
      if (const auto* only = gpus.only()) {
        add([=](sdk::Slot slot) { return only->requested[slot]; },
            [=](sdk::Slot slot) { return only->allocatable[slot]; });
      } else {
        add([&](sdk::Slot slot) { return gpus.Requested(slot); },
            [&](sdk::Slot slot) { return gpus.Allocatable(slot); });
      }
    }
    if (weighing.cpu > 0) {
      AddUseTerms(
          weighing.cpu, state.cpu_millis, nodes,
          [requested = table.requested_cpu.data()](sdk::Slot slot) { return requested[slot]; },
          [allocatable = table.allocatable_cpu.data()](sdk::Slot slot) {
            return allocatable[slot];
          });
    }
    ForEachMetric(weighing, nodes, [&](size_t, double weight) {
      for (size_t i = 0; i < nodes.size(); ++i) sums_[i] += weight * metric_terms_[i];
    });
  }
  // Calls back for each metric that counts, with its terms in metric_terms_.
  template <typename Use>
  void ForEachMetric(const Weighing& weighing, absl::Span<const sdk::Slot> nodes,
                     const Use& use) const {
    for (size_t metric = 0; metric < weighing.metrics.size(); ++metric) {
      if (weighing.metrics[metric] <= 0) continue;
      metric_terms_.resize(nodes.size());
      metrics_.Terms(metric, weighing.now, nodes, absl::MakeSpan(metric_terms_));
      use(metric, weighing.metrics[metric]);
    }
  }
  void AddDistanceTerms(double weight, const PreferencesState& state,
                        absl::Span<const sdk::Slot> nodes) const {
    if (state.data.size() == 1 && state.pods.total == 0) {
      const Targets& holders = *state.data[0];
      for (size_t i = 0; i < nodes.size(); ++i)
        sums_[i] += weight * places_.NearestCloseness(holders, nodes[i]);
      return;
    }
    for (size_t i = 0; i < nodes.size(); ++i) sums_[i] += weight * DistanceTerm(state, nodes[i]);
  }
  template <typename Requested, typename Allocatable>
  void AddUseTerms(double weight, int64_t more, absl::Span<const sdk::Slot> nodes,
                   const Requested& requested, const Allocatable& allocatable) const {
    double* const sums = sums_.data();
    for (size_t i = 0; i < nodes.size(); ++i)
      sums[i] += weight * UseTerm(requested(nodes[i]) + more, allocatable(nodes[i]));
  }

  double DistanceTerm(const PreferencesState& state, sdk::Slot slot) const {
    double sum = 0;
    size_t parts = state.data.size();
    for (const Holders& data : state.data) sum += places_.NearestCloseness(*data, slot);
    if (state.pods.total > 0) {
      sum += places_.MeanCloseness(state.pods, slot);
      ++parts;
    }
    return sum / static_cast<double>(parts);
  }
  static double UseTerm(int64_t used, int64_t allocatable) {
    const double use = static_cast<double>(used) / static_cast<double>(allocatable);
    return allocatable <= 0 ? 0 : std::min(1.0, std::max(0.0, use));
  }

  const Args args_;
  const std::string profile_;
  const sdk::ClusterView cluster_;
  // Mutable: scoring computes ranks. All calls come on one thread.
  mutable NodeCosts costs_;
  mutable std::vector<double> sums_;  // Of the scored nodes, in their order.
  std::vector<uint32_t> region_;      // By slot: the id of the label's value in the cluster cache.
  // Nodes outside of some regions (BoundsState::regions), and nodes above a cost or without one.
  mutable sdk::NodeSets<std::vector<uint32_t>> outside_;
  mutable sdk::NodeSets<double> dear_;
  Places places_;
  // Mutable: calls take new readings over.
  mutable prometheus::NodeMetrics metrics_;
  mutable std::vector<double> metric_terms_;        // Of the scored nodes.
  absl::flat_hash_map<std::string, int64_t> used_;  // Licences of pods on nodes.
  const sdk::Verdict unknown_cost_ = sdk::Verdict::Unresolvable("cost of the node is unknown");
  absl::flat_hash_map<const sdk::PodRecord*, uint64_t> warned_at_;  // PodRecord::generation
  sdk::MalformedValues malformed_{kName};
};

}  // namespace

sdk::PluginDescriptor DescriptorWith(prometheus::MakeMetricSource make_source) {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  d.metrics = prometheus::FiguresOf(kMetricPrefix);
  d.wake_up_events = {sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
                      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_LABEL,
                                          Event::ACTION_UPDATE_OTHER})};
  for (const char* key :
       {kWeightsAnnotation, kNearPodsAnnotation, kDataAnnotation, kDataWithinAnnotation,
        kLatestStartAnnotation, kHighestCostAnnotation, kRegionsAnnotation}) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
  }
  d.signature = sdk::SignedParts(d.needed_fields,
                                 {"metadata.namespace", "metadata.labels", "spec.containers"});
  d.maturity = sdk::Maturity::kAlpha;
  d.create =
      [make_source = std::move(make_source)](
          const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Objectives>(ReadArgs(context.args->root()), make_source, context);
  };
  return d;
}

sdk::PluginDescriptor Descriptor() { return DescriptorWith(&prometheus::MetricReader::Shared); }

}  // namespace outboard::objectives
