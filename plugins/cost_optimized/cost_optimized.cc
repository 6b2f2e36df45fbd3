#include "plugins/cost_optimized/cost_optimized.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/score.h"
#include "plugins/cost_optimized/cheap_hours.h"
#include "plugins/cost_optimized/node_price.h"

namespace outboard::cost_optimized {
namespace {

constexpr char kName[] = "CostOptimized";
constexpr char kWaitAnnotation[] = "outboard/run-after-cheap-hours";
constexpr char kLatestStartAnnotation[] = "outboard/latest-start";

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "windows": {"type": "array", "maxItems": 32, "description":
      "Hours of the week that scale the cost of nodes; the first that covers the time counts.",
      "items": {"type": "object", "additionalProperties": false,
        "required": ["from", "to", "factor"], "properties": {
          "days": {"type": "string", "default": "*", "description":
            "Days on which it begins, as in cron: *, Mon-Fri, Sat,Sun, 1-5."},
          "from": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$",
            "description": "Time of day at which it begins."},
          "to": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$", "description":
            "Time of day at which it ends, at most 24:00; below from: on the following day."},
          "timezone": {"type": "string", "default": "UTC",
            "description": "IANA name of the time zone, such as Europe/Berlin."},
          "factor": {"type": "number", "minimum": 0, "maximum": 1000, "description":
            "Multiplies the cost of nodes in this window; below 1: cheap hours."}}}},
    "spotLabels": {"type": "object", "additionalProperties": {"type": "string"}, "description":
      "Further node labels, each with the value that means spot."}}})json";

struct Args {
  CheapHours hours;
  std::map<std::string, std::string> spot_labels;
};

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
  CostOptimized(Args args, const sdk::PluginContext& context)
      : args_(std::move(args)),
        profile_(context.profile),
        cluster_(context.cluster),
        pushes_(context.pushes) {}

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
    const double factor = args_.hours.FactorAt(attempt.now());
    const sdk::NodeTable& table = attempt.cluster().nodes();
    if (std::exchange(scores_factor_, factor) != factor) scores_.Clear();
    scores_.Of(table, nodes, raw, [&](sdk::Slot slot) {
      return static_cast<int64_t>(TermsOf(table, slot, factor).total());
    });
    if (VLOG_IS_ON(4)) Log(attempt, nodes, factor);
    return sdk::Verdict::Success();
  }

  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    const double factor = args_.hours.FactorAt(attempt.now());
    std::vector<std::vector<sdk::ScoreTerm>> explained;
    for (const sdk::Slot slot : nodes) {
      const Terms terms = TermsOf(attempt.cluster().nodes(), slot, factor);
      explained.push_back(
          {{"base", 100}, {"spot", terms.spot}, {"cost", terms.cost}, {"use", terms.use}});
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
    cost_.clear();
    spot_.clear();
    held_.clear();
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= cost_.size()) {
      cost_.resize(slot + 1, kUnknownCost);
      spot_.resize(slot + 1, 0);
    }
    const v1beta1::Node& node = cluster_.node(slot).proto();
    const NodePrice price = ReadNodePrice(node.labels(), args_.spot_labels,
                                          absl::StrCat("node ", node.name()), &malformed_);
    cost_[slot] = price.cost.value_or(kUnknownCost);
    spot_[slot] = price.spot ? 1 : 0;
  }
  void OnNodeRemoved(sdk::Slot, const std::string& name) override {
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    if (pod.pod.scheduler_name() != profile_) return;
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
    if (sdk::FindValue(pod.pod.annotations(), kWaitAnnotation) == nullptr) return;
    held_.erase(pod.pod.uid());
    malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }
  // No cluster event reports the start of cheap hours. A push can reach the shim before the answer
  // that holds the pod, so it is repeated until the shim calls PreEnqueue.
  void OnTick(absl::Time now) override {
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
  static constexpr double kUnknownCost = -1;
  static constexpr int kUntilAsked = -1;
  static constexpr int kReminders = 5;

  struct Terms {
    double spot, cost, use;
    double total() const { return 100 + spot + cost + use; }
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

  // An unknown cost adds nothing: a node without a price must not count as cheap.
  Terms TermsOf(const sdk::NodeTable& table, sdk::Slot slot, double factor) const {
    Terms terms;
    terms.spot = spot_[slot] != 0 ? 200 : 0;
    terms.cost = cost_[slot] == kUnknownCost ? 0 : std::max(0.0, 100 - cost_[slot] * factor);
    terms.use = (UsedPercent(table.requested_cpu[slot], table.allocatable_cpu[slot]) +
                 UsedPercent(table.requested_memory[slot], table.allocatable_memory[slot])) /
                4;
    return terms;
  }

  void Log(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes, double factor) const {
    const sdk::NodeTable& table = attempt.cluster().nodes();
    for (const sdk::Slot slot : nodes) {
      const Terms terms = TermsOf(table, slot, factor);
      VLOG(4) << kName << ": node " << table.nodes[slot].name() << " pod " << attempt.pod().uid()
              << ": base (100) + spot (" << terms.spot << ") + cost (" << terms.cost << ", factor "
              << factor << ") + use (" << terms.use << ") = " << terms.total();
    }
  }

  const Args args_;
  const std::string profile_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  // By slot.
  std::vector<double> cost_;
  std::vector<uint8_t> spot_;
  mutable sdk::NodeMemo<int64_t> scores_;  // valid for one cost factor
  mutable double scores_factor_ = 1;
  // PreEnqueue also changes it, to record held pods; all calls are on one thread.
  mutable absl::flat_hash_map<std::string, Held> held_;  // By uid.
  mutable absl::Time next_cheap_asked_ = absl::InfiniteFuture();
  mutable std::optional<absl::Time> next_cheap_;
  bool warned_of_no_hours_ = false;
  sdk::MalformedValues malformed_{kName};
};

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.hours = CheapHours::Read(root);
  const sdk::ArgsObject labels = root.Object("spotLabels");
  for (const std::string& key : labels.Keys()) args.spot_labels[key] = labels.String(key, "");
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = kArgsSchema;
  d.wake_up_events = {sdk::WakeOn("Pod", {Event::ACTION_UPDATE_OTHER})};
  for (const char* key : {kWaitAnnotation, kLatestStartAnnotation}) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
  }
  d.interests = {sdk::InterestIn(v1beta1::EXTENSION_POINT_PRE_ENQUEUE,
                                 {absl::StrCat("metadata.annotations['", kWaitAnnotation, "']")})};
  d.signature.emplace();  // A pod's annotations decide when it may start, not where.
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<CostOptimized>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::cost_optimized
