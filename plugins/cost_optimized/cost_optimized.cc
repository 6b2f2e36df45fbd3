#include "plugins/cost_optimized/cost_optimized.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/unknown_nodes.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/score.h"
#include "plugins/cost_optimized/args.h"
#include "plugins/cost_optimized/cheap_hours.h"
#include "plugins/cost_optimized/node_price.h"
#include "plugins/cost_optimized/price_list_watch.h"
#include "plugins/cost_optimized/relative_price.h"
#include "plugins/cost_optimized/spot_wish.h"

namespace outboard::cost_optimized {
namespace {

constexpr char kName[] = "CostOptimized";
constexpr char kWaitAnnotation[] = "outboard/run-after-cheap-hours";
constexpr char kLatestStartAnnotation[] = "outboard/latest-start";
constexpr char kUnknownNodesMetric[] = "outboard_cost_optimized_unknown_nodes";
constexpr char kPriceAgeMetric[] = "outboard_cost_optimized_price_age_seconds";

// For the kind of node that a pod wants: more than all other terms.
constexpr double kSpotTerm = 200;

// A pod's wishes for its start.
struct StartRequest {
  bool after_cheap_hours = false;
  std::optional<absl::Time> latest_start;
};

// Reports malformed values to `malformed`, if given.
StartRequest StartRequestOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) {
  StartRequest request;
  const std::string* wait = sdk::FindValue(pod.annotations(), kWaitAnnotation);
  if (wait == nullptr) return request;
  const auto complain = [&](const char* key, const std::string& value, const char* wanted) {
    if (malformed == nullptr) return;
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, value, wanted);
  };
  const std::optional<bool> waits = sdk::ParseBool(*wait);
  if (!waits) complain(kWaitAnnotation, *wait, "true or false");
  request.after_cheap_hours = waits.value_or(false);
  if (const std::string* latest = sdk::FindValue(pod.annotations(), kLatestStartAnnotation)) {
    request.latest_start = sdk::ParseTimestamp(*latest);
    if (!request.latest_start)
      complain(kLatestStartAnnotation, *latest, "a time such as 2026-01-31T22:00:00Z");
  }
  return request;
}

// The used percentage, within 0..100.
double UsedPercent(int64_t requested, int64_t allocatable) {
  if (allocatable <= 0) return 0;
  const double percent = 100.0 * static_cast<double>(requested) / static_cast<double>(allocatable);
  return std::clamp(percent, 0.0, 100.0);
}

class CostOptimized : public sdk::Plugin,
                      public sdk::PreEnqueuePlugin,
                      public sdk::ScorePlugin,
                      public sdk::QueueingHintPlugin,
                      public sdk::ClusterObserver {
 public:
  CostOptimized(Args args, std::shared_ptr<PriceListWatch> watch,
                std::shared_ptr<PriceSource> source, const sdk::PluginContext& context)
      : args_(std::move(args)),
        watch_(std::move(watch)),
        source_(std::move(source)),
        profile_(context.profile),
        cluster_(context.cluster),
        pushes_(context.pushes),
        spot_rules_(args_.spot),
        unknown_nodes_(kName, "price", "the node gets nothing for its price",
                       context.metrics->NewGauge(kUnknownNodesMetric, {context.profile})),
        price_age_(source_ == nullptr
                       ? nullptr
                       : context.metrics->NewGauge(kPriceAgeMetric, {context.profile})) {
    if (watch_ != nullptr) price_list_ = watch_->Latest();
  }

  sdk::Verdict PreEnqueue(const sdk::PodView& pod, const sdk::ClusterView& cluster,
                          absl::Time now) const override {
    const StartRequest request = StartRequestOf(pod.proto(), nullptr);
    if (!Waits(request) || IsOpen(request, now)) {
      held_.erase(pod.uid());
      return sdk::Verdict::Success();
    }
    held_[pod.uid()] = {request.latest_start, kUntilAsked};
    const std::optional<absl::Time> cheap = NextCheap(now);
    const bool latest_is_first = request.latest_start && (!cheap || *request.latest_start < *cheap);
    const std::optional<absl::Time> opens = latest_is_first ? request.latest_start : cheap;
    std::string reason = "waiting for cheap hours";
    if (opens) {
      absl::StrAppend(&reason, latest_is_first ? ", at the latest until " : ", which begin at ",
                      absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", *opens, absl::UTCTimeZone()));
    }
    return sdk::Verdict::Unresolvable(std::move(reason));
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    if (args_.formula == Args::Formula::kClassic) {
      ScoreClassic(attempt, nodes, raw);
    } else {
      ScoreRelative(attempt, nodes, raw);
    }
    if (VLOG_IS_ON(4)) Log(attempt, nodes);
    return sdk::Verdict::Success();
  }

  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    std::vector<std::vector<sdk::ScoreTerm>> explained;
    for (const Terms& terms : TermsOfNodes(attempt, nodes)) {
      explained.push_back({{"spot", terms.spot}, {"cost", terms.cost}, {"use", terms.use}});
      if (args_.formula == Args::Formula::kClassic)
        explained.back().insert(explained.back().begin(), {"base", terms.base});
    }
    return explained;
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/false, scores);
    return sdk::Verdict::Success();
  }

  // Only a change of the pod itself helps; OnTick handles the cheap hours.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    return change.new_pod != nullptr && change.new_pod->uid() == pod.uid() ? sdk::Hint::kQueue
                                                                           : sdk::Hint::kSkip;
  }

  void OnReset() override {
    scores_.Clear();
    uses_.Clear();
    cost_.clear();
    spot_.clear();
    held_.clear();
    unknown_nodes_.Clear();
    spot_rules_.Clear();
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override { ReadPriceOf(slot); }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    unknown_nodes_.Forget(slot);
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    spot_rules_.SetObject(object, &malformed_);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    spot_rules_.RemoveObject(object, &malformed_);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    if (pod.pod.scheduler_name() != profile_) return;
    if (!pod.on_node()) spot_rules_.WishOf(pod.pod, &malformed_);
    const StartRequest request = StartRequestOf(pod.pod, &malformed_);
    if (!request.after_cheap_hours || pod.on_node() || !pod.pod.node_name().empty()) {
      held_.erase(pod.pod.uid());
      return;
    }
    if (!args_.hours.any()) {
      LOG_IF(WARNING, !std::exchange(warned_of_no_hours_, true))
          << kName << ": pod " << pod.pod.namespace_() << "/" << pod.pod.name()
          << " would wait for cheap hours, but no window has a factor below 1; it does not wait";
      return;
    }
    // The shim may hold the pod because of an earlier host.
    Held& held = held_[pod.pod.uid()];
    held.latest_start = request.latest_start;
    if (held.pushes_left != kUntilAsked) held.pushes_left = kReminders;
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    held_.erase(pod.pod.uid());
    if (malformed_.warned() == 0) return;
    malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }
  // No cluster event reports the start of cheap hours. A push can reach the shim before the answer
  // that holds the pod, so it is repeated until the shim calls PreEnqueue.
  void OnTick(absl::Time now) override {
    ReadPrices(now);
    if (held_.empty()) return;
    const bool cheap = args_.hours.IsCheap(now);
    std::vector<std::string> open;
    for (auto it = held_.begin(); it != held_.end();) {
      const auto current = it++;
      Held& held = current->second;
      if (!cheap && (!held.latest_start || now < *held.latest_start)) continue;
      open.push_back(current->first);
      if (held.pushes_left != kUntilAsked && --held.pushes_left == 0) held_.erase(current);
    }
    if (open.empty()) return;
    std::sort(open.begin(), open.end());
    pushes_->GateChanged(open);
  }

 private:
  static constexpr int kUntilAsked = -1;
  static constexpr int kReminders = 5;

  struct Terms {
    double base = 0, spot = 0, cost = 0, use = 0;
    double total() const { return base + spot + cost + use; }
  };
  // A pod that waits, or may wait.
  struct Held {
    std::optional<absl::Time> latest_start;
    // How many more times the shim is notified that the pod need not wait. kUntilAsked: PreEnqueue
    // held the pod, so notify until the shim calls PreEnqueue again.
    int pushes_left = kReminders;
  };

  bool Waits(const StartRequest& request) const {
    return request.after_cheap_hours && args_.hours.any();
  }
  bool IsOpen(const StartRequest& request, absl::Time now) const {
    return (request.latest_start && now >= *request.latest_start) || args_.hours.IsCheap(now);
  }
  // Searches up to weeks ahead, so once for all waiting pods.
  std::optional<absl::Time> NextCheap(absl::Time now) const {
    if (now < next_cheap_asked_ ||
        now >= next_cheap_.value_or(next_cheap_asked_ + absl::Hours(1))) {
      next_cheap_ = args_.hours.NextCheap(now);
      next_cheap_asked_ = now;
    }
    return next_cheap_;
  }

  // Takes over a price list and published prices that have changed, or have become too old.
  void ReadPrices(absl::Time now) {
    std::shared_ptr<const sdk::PriceList> list = watch_ == nullptr ? nullptr : watch_->Latest();
    std::shared_ptr<const PriceSnapshot> snapshot =
        source_ == nullptr ? nullptr : source_->Latest();
    if (snapshot != nullptr) {
      const absl::Duration age = now - snapshot->asked;
      price_age_->Set(absl::ToDoubleSeconds(age));
      if (age > args_.max_price_age) snapshot = nullptr;
    }
    if (list == price_list_ && snapshot == snapshot_) return;
    price_list_ = std::move(list);
    snapshot_ = std::move(snapshot);
    scores_.Clear();
    for (const sdk::Slot slot : cluster_.node_order()) ReadPriceOf(slot);
  }
  void ReadPriceOf(sdk::Slot slot) {
    if (slot >= cost_.size()) {
      cost_.resize(slot + 1, kUnknownPrice);
      spot_.resize(slot + 1, 0);
    }
    const v1beta1::Node& node = cluster_.node(slot).proto();
    const NodePrice price = ReadNodePrice(
        node, {price_list_.get(), snapshot_ == nullptr ? nullptr : &snapshot_->prices},
        args_.spot_labels, &malformed_);
    cost_[slot] = price.cost.value_or(kUnknownPrice);
    spot_[slot] = price.spot ? 1 : 0;
    unknown_nodes_.Set(slot, node.name(), !price.cost.has_value());
  }

  static double UseTerm(const sdk::NodeTable& table, sdk::Slot slot) {
    return (UsedPercent(table.requested_cpu[slot], table.allocatable_cpu[slot]) +
            UsedPercent(table.requested_memory[slot], table.allocatable_memory[slot])) /
           4;
  }

  // An unknown cost adds nothing: a node without a price must not count as cheap.
  Terms ClassicTerms(const sdk::NodeTable& table, sdk::Slot slot, double factor) const {
    Terms terms;
    terms.base = 100;
    terms.spot = spot_[slot] != 0 ? kSpotTerm : 0;
    terms.cost = cost_[slot] == kUnknownPrice ? 0 : std::max(0.0, 100 - cost_[slot] * factor);
    terms.use = UseTerm(table, slot);
    return terms;
  }
  void ScoreClassic(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                    absl::Span<int64_t> raw) const {
    const double factor = args_.hours.FactorAt(attempt.now());
    const sdk::NodeTable& table = attempt.cluster().nodes();
    if (std::exchange(scores_factor_, factor) != factor) scores_.Clear();
    scores_.Of(table, nodes, raw, [&](sdk::Slot slot) {
      return static_cast<int64_t>(ClassicTerms(table, slot, factor).total());
    });
  }

  // The factor of a window is the same for all nodes, so it changes nothing here.
  void ScoreRelative(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const {
    const SpotWish wish = spot_rules_.WishOf(attempt.pod().proto(), nullptr);
    PriceTerms(attempt, nodes);
    UseTerms(attempt, nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      // Rounded: equal costs on machines of different sizes may differ in the last bit.
      raw[i] = static_cast<int64_t>(SpotTerm(wish, nodes[i]) + cost_terms_[i] +
                                    static_cast<double>(use_terms_[i]) + 0.5);
    }
  }
  double SpotTerm(SpotWish wish, sdk::Slot slot) const {
    if (wish == SpotWish::kNeutral) return 0;
    return (wish == SpotWish::kWelcome) == (spot_[slot] != 0) ? kSpotTerm : 0;
  }
  // Fills cost_terms_.
  void PriceTerms(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(attempt.cluster());
    const sdk::PodUsage& usage = attempt.pod().usage();
    const Amounts pod = {usage.nonzero_cpu_millis, usage.nonzero_memory_bytes,
                         args_.gpus.DemandOf(attempt.pod().proto())};
    cost_terms_.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      const sdk::Slot slot = nodes[i];
      const Amounts node = {table.allocatable_cpu[slot], table.allocatable_memory[slot],
                            pod.gpus == 0 ? 0 : gpus.Allocatable(slot)};
      const double price = cost_[slot];
      cost_terms_[i] = price == kUnknownPrice ? kUnknownPrice : price * ShareOf(pod, node);
    }
    CostsToTerms(absl::MakeSpan(cost_terms_));
  }
  // Fills use_terms_.
  void UseTerms(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    use_terms_.resize(nodes.size());
    uses_.Of(table, nodes, absl::MakeSpan(use_terms_),
             [&](sdk::Slot slot) { return static_cast<float>(UseTerm(table, slot)); });
  }

  // For explanations; Score does the same faster.
  std::vector<Terms> TermsOfNodes(const sdk::Attempt& attempt,
                                  absl::Span<const sdk::Slot> nodes) const {
    std::vector<Terms> all;
    all.reserve(nodes.size());
    if (args_.formula == Args::Formula::kClassic) {
      const double factor = args_.hours.FactorAt(attempt.now());
      for (const sdk::Slot slot : nodes)
        all.push_back(ClassicTerms(attempt.cluster().nodes(), slot, factor));
      return all;
    }
    const SpotWish wish = spot_rules_.WishOf(attempt.pod().proto(), nullptr);
    PriceTerms(attempt, nodes);
    UseTerms(attempt, nodes);
    for (size_t i = 0; i < nodes.size(); ++i)
      all.push_back({0, SpotTerm(wish, nodes[i]), cost_terms_[i], use_terms_[i]});
    return all;
  }

  void Log(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    const std::vector<Terms> all = TermsOfNodes(attempt, nodes);
    for (size_t i = 0; i < nodes.size(); ++i) {
      VLOG(4) << kName << ": node " << table.nodes[nodes[i]].name() << " pod "
              << attempt.pod().uid() << ": base (" << all[i].base << ") + spot (" << all[i].spot
              << ") + cost (" << all[i].cost << ") + use (" << all[i].use
              << ") = " << all[i].total();
    }
  }

  const Args args_;
  const std::shared_ptr<PriceListWatch> watch_;  // Null without a price list.
  const std::shared_ptr<PriceSource> source_;    // Null without a Prometheus.
  const std::string profile_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  SpotRules spot_rules_;
  sdk::UnknownNodes unknown_nodes_;
  const std::shared_ptr<sdk::Gauge> price_age_;  // Null without a source.
  // Null: none.
  std::shared_ptr<const sdk::PriceList> price_list_;
  std::shared_ptr<const PriceSnapshot> snapshot_;
  // By slot.
  std::vector<double> cost_;
  std::vector<uint8_t> spot_;
  mutable sdk::NodeMemo<int64_t> scores_;  // valid for one cost factor
  mutable double scores_factor_ = 1;
  mutable sdk::NodeMemo<float> uses_;
  // Of the scored nodes, in their order.
  mutable std::vector<double> cost_terms_;
  mutable std::vector<float> use_terms_;
  // PreEnqueue also changes it, to record held pods; all calls are on one thread.
  mutable absl::flat_hash_map<std::string, Held> held_;  // By uid.
  mutable absl::Time next_cheap_asked_ = absl::InfiniteFuture();
  mutable std::optional<absl::Time> next_cheap_;
  bool warned_of_no_hours_ = false;
  sdk::MalformedValues malformed_{kName};
};

}  // namespace

sdk::PluginDescriptor DescriptorWith(MakeSource make_source) {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  d.wake_up_events = {sdk::WakeOn("Pod", {Event::ACTION_UPDATE_OTHER})};
  for (const char* key :
       {kWaitAnnotation, kLatestStartAnnotation, kSpotKey, kCheckpointingAnnotation}) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
  }
  d.needed_fields.push_back(kPriorityClassField);
  d.declared_resources = {PriorityClassResource()};
  d.interests = {sdk::InterestIn(v1beta1::EXTENSION_POINT_PRE_ENQUEUE,
                                 {absl::StrCat("metadata.annotations['", kWaitAnnotation, "']")})};
  // The annotations about the start decide when a pod may start, not where.
  d.signature = std::vector<std::string>{
      "spec.priorityClassName", absl::StrCat("metadata.labels['", kSpotKey, "']"),
      absl::StrCat("metadata.annotations['", kSpotKey, "']"),
      absl::StrCat("metadata.annotations['", kCheckpointingAnnotation, "']")};
  for (std::string& part : sdk::WorkloadTypeParts()) d.signature->push_back(std::move(part));
  d.metrics = {
      {kUnknownNodesMetric, sdk::MetricType::kGauge, {"profile"}, "Nodes whose price is unknown."},
      {kPriceAgeMetric,
       sdk::MetricType::kGauge,
       {"profile"},
       "Age of the prices read from Prometheus; see prices.maxAge."},
      {kPriceReadsMetric,
       sdk::MetricType::kCounter,
       {"result"},
       "Readings of prices from Prometheus by result: ok, unreachable, timeout, status, "
       "too_large, token, malformed, error, no_samples."},
      {kPriceListFailuresMetric,
       sdk::MetricType::kCounter,
       {},
       "Contents of the price list that could not be used."}};
  d.maturity = sdk::Maturity::kAlpha;
  d.create =
      [make_source = std::move(make_source)](
          const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    Args args = ReadArgs(context.args->root());
    std::shared_ptr<PriceListWatch> watch;
    std::shared_ptr<PriceSource> source;
    if (context.args->ok() && !args.price_list.empty())
      watch = PriceListWatch::Shared(args.price_list, context.metrics);
    if (context.args->ok() && !args.reader.server.address.empty())
      source = make_source(args.reader, context.metrics);
    return std::make_unique<CostOptimized>(std::move(args), std::move(watch), std::move(source),
                                           context);
  };
  return d;
}

sdk::PluginDescriptor Descriptor() { return DescriptorWith(&PriceReader::Shared); }

}  // namespace outboard::cost_optimized
