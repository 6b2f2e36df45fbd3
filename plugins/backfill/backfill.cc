#include "plugins/backfill/backfill.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/run_facts/run_facts.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/backfill/line.h"
#include "plugins/backfill/reservation.h"
#include "plugins/backfill/run_times.h"

namespace outboard::backfill {
namespace {

constexpr char kName[] = "Backfill";
constexpr char kUnknownEnds[] = "outboard_backfill_unknown_ends";
constexpr char kOverruns[] = "outboard_backfill_overruns_total";
constexpr absl::Duration kLongest = absl::Hours(10 * 365 * 24);

// Without its end, which follows kJobGangsSchema.
const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "defaultRunTime": {"type": "string", "default": "0s",
      "description": "How long pods run without a declared run time and deadline; 0s: unknown. At most 87600h."},
    "overrun": {"type": "string", "default": "5m",
      "description": "How much longer pods are assumed to run after their end; a declared end does not count after that. At most 87600h."},
    )json";

// A pod that runs for `run` fits best on nodes that are in use for as long; nodes that are free now
// or soon stay available to pods that need a whole node. The score is the factor by which the
// node's use grows, on a log scale: 100 for no growth, 0 for a week on an idle node.
int64_t ScoreOf(absl::Duration run, absl::Duration in_use) {
  constexpr absl::Duration kMost = absl::Hours(7 * 24), kLeast = absl::Minutes(1);
  if (in_use >= run) return 100;
  const auto length = [&](absl::Duration its) {
    return std::clamp(its, absl::Duration(), kMost) + kLeast;
  };
  const double times = absl::FDivDuration(length(run), length(in_use));
  const double most = absl::FDivDuration(kMost + kLeast, kLeast);
  return std::llround(100 * (1 - std::log(times) / std::log(most)));
}

// State of a pod that must not use the reserved room.
struct Kept : sdk::AttemptState {
  std::shared_ptr<const Reservation> reservation;
  Amounts asked;  // by resource of the reservation
  sdk::Verdict verdict;
};

class Backfill : public sdk::Plugin,
                 public sdk::PreFilterPlugin,
                 public sdk::FilterPlugin,
                 public sdk::ScorePlugin,
                 public sdk::QueueingHintPlugin,
                 public sdk::ClusterObserver {
 public:
  Backfill(const Line::Options& options, const sdk::PluginContext& context)
      : line_(kName, context.profile, options, context.cluster,
              context.metrics->NewCounter(kOverruns, {context.profile})),
        pushes_(context.pushes),
        unknown_ends_(context.metrics->NewGauge(kUnknownEnds, {context.profile})) {}

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    kept_off_.erase(pod.uid());
    if (line_.IsNext(pod)) return sdk::Verdict::Skip();
    const std::shared_ptr<const Reservation> reservation = line_.ReservationAt(attempt.now());
    if (reservation == nullptr || !MustKeepOff(pod, *reservation, attempt.now()))
      return sdk::Verdict::Skip();
    kept_off_[pod.uid()] = reservation->unit_id;
    Kept& kept = attempt.NewFilterState<Kept>();
    for (const Resource& resource : reservation->resources)
      kept.asked.push_back(resource.AskedBy(attempt.pod().record()));
    kept.verdict = sdk::Verdict::Unschedulable(ReasonOf(pod, *reservation, attempt.now()));
    kept.reservation = reservation;
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* kept = attempt.filter_state<Kept>();
    if (kept == nullptr) return;
    uint64_t rejected = 0;
    block.ForEach([&](int i, sdk::Slot slot) {
      const Reservation::Node* const node = kept->reservation->At(slot);
      if (node != nullptr && !line_.HasRoomBeside(*kept->reservation, *node, kept->asked))
        rejected |= uint64_t{1} << i;
    });
    sink.RejectAll(rejected, kept->verdict);
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const sdk::PodRecord& pod = attempt.pod().record();
    const absl::Duration run =
        line_.RunTimeOf(pod.pod).EndOfStart(attempt.now()).value_or(absl::InfiniteFuture()) -
        attempt.now();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const absl::Time until = line_.InUseUntil(nodes[i], pod, attempt.now());
      raw[i] = ScoreOf(run, until - attempt.now());
    }
    return sdk::Verdict::Success();
  }

  // Events that may help: released room; a node added or grown; the unit of the reservation gets
  // its place, or is deleted.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_node != nullptr) return sdk::Hint::kQueue;
    if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    const v1beta1::Pod* const other = change.new_pod != nullptr ? change.new_pod : change.old_pod;
    if (other == nullptr) return sdk::Hint::kQueue;
    const bool had_place = !other->node_name().empty();
    if (change.action == v1beta1::ClusterEvent::ACTION_DELETE && had_place)
      return sdk::Hint::kQueue;
    if (change.action != v1beta1::ClusterEvent::ACTION_DELETE &&
        change.action != v1beta1::ClusterEvent::ACTION_ADD)
      return sdk::Hint::kSkip;
    const auto kept_off = kept_off_.find(pod.uid());
    return kept_off != kept_off_.end() && kept_off->second == line_.UnitIdOf(*other)
               ? sdk::Hint::kQueue
               : sdk::Hint::kSkip;
  }

  void OnReset() override {
    line_.Clear();
    kept_off_.clear();
  }
  void OnNodeChanged(sdk::Slot) override { line_.NodeChanged(); }
  void OnNodeRemoved(sdk::Slot, const std::string&) override { line_.NodeRemoved(); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot) override { line_.PodOnNode(pod); }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot) override {
    line_.PodOffNode(pod);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    line_.SetPod(pod);
    if (sdk::StateOf(pod) != sdk::MemberState::kPending) kept_off_.erase(pod.pod.uid());
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    line_.RemovePod(pod);
    kept_off_.erase(pod.pod.uid());
  }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    line_.SetObject(object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    line_.RemoveObject(object);
  }
  // No event reports the end of a reservation for a unit that another plugin rejects.
  void OnTick(absl::Time now) override {
    line_.Tick(now);
    unknown_ends_->Set(static_cast<double>(line_.unknown_ends()));
    if (kept_off_.empty()) return;
    const std::shared_ptr<const Reservation> reservation = line_.ReservationAt(now);
    std::vector<std::string> freed;
    for (const auto& [uid, unit_id] : kept_off_)
      if (reservation == nullptr || reservation->unit_id != unit_id) freed.push_back(uid);
    if (freed.empty()) return;
    for (const std::string& uid : freed) kept_off_.erase(uid);
    std::sort(freed.begin(), freed.end());
    pushes_->Activate(freed);
  }

 private:
  // Returns true if the pod comes after the first in line and would delay it.
  bool MustKeepOff(const v1beta1::Pod& pod, const Reservation& reservation, absl::Time now) const {
    if (reservation.unit_id == line_.UnitIdOf(pod) || line_.TurnOf(pod) < reservation.turn)
      return false;
    const RunTime run_time = line_.RunTimeOf(pod);
    const std::optional<absl::Time> end = run_time.EndOfStart(now);
    if (end && *end <= reservation.when) return false;
    const bool is_taken_back = run_time.preemptible && reservation.outranks_below &&
                               pod.priority() < *reservation.outranks_below;
    return !is_taken_back || reservation.when <= now;
  }

  std::string ReasonOf(const v1beta1::Pod& pod, const Reservation& reservation,
                       absl::Time now) const {
    const std::optional<absl::Time> end = line_.RunTimeOf(pod).EndOfStart(now);
    const std::string declared =
        end ? absl::StrCat(DurationText(*end - now), " declared") : "no run time declared";
    if (reservation.when <= now)
      return absl::StrCat("node is reserved for ", reservation.unit_name, " (", declared, ")");
    return absl::StrCat("node is reserved for ", reservation.unit_name, " from ",
                        ClockText(reservation.when, now), " on (", declared, ", ",
                        DurationText(reservation.when - now), " left)");
  }

  Line line_;
  sdk::ShimNotifier* const pushes_;
  const std::shared_ptr<sdk::Gauge> unknown_ends_;
  // The unit that each pod had to leave room to in its last attempt: pod uid to unit id. Only used
  // to decide when to retry the pod; after a restart of the host all pods are retried.
  mutable absl::flat_hash_map<std::string, std::string> kept_off_;
};

Line::Options ReadOptions(const sdk::ArgsObject& root) {
  const auto read = [&](const char* key, absl::Duration value) {
    const absl::Duration its = root.Duration(key, value);
    if (its >= absl::ZeroDuration() && its <= kLongest) return its;
    root.Problem(key, absl::StrCat("Invalid value: ", absl::FormatDuration(its),
                                   ": not in valid range [0s, 87600h]"));
    return value;
  };
  Line::Options options;
  const absl::Duration run_time = read("defaultRunTime", absl::ZeroDuration());
  if (run_time > absl::ZeroDuration()) options.default_run_time = run_time;
  options.overrun = read("overrun", options.overrun);
  options.jobs = sdk::ReadJobGangRules(root);
  return options;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = absl::StrCat(kArgsSchema, sdk::kJobGangsSchema, "}}");
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_ADD, Event::ACTION_DELETE, Event::ACTION_UPDATE_OTHER}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE})};
  d.needed_fields = sdk::GroupAnnotationFields();
  for (const std::string& key : sdk::RunAnnotations())
    d.needed_fields.push_back(sdk::AnnotationField(key));
  d.declared_resources = sdk::PodGroupResources();
  for (v1beta1::DeclaredResource& resource : sdk::RunOwnerResources())
    d.declared_resources.push_back(std::move(resource));
  d.metrics = {{kUnknownEnds,
                sdk::MetricType::kGauge,
                {"profile"},
                "Pods on nodes of which no end is known, or whose declared end was wrong."},
               {kOverruns,
                sdk::MetricType::kCounter,
                {"profile"},
                "Pods that ran longer than they declared, and are not trusted again."}};
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Backfill>(ReadOptions(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::backfill
