#include "plugins/backfill/backfill.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_group_objects.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/backfill/reservation.h"
#include "plugins/backfill/run_times.h"

namespace outboard::backfill {
namespace {

constexpr char kName[] = "Backfill";
constexpr absl::Duration kLongest = absl::Hours(10 * 365 * 24);

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "defaultRunTime": {"type": "string", "default": "0s",
      "description": "How long pods run that do not say; 0s: nobody knows. At most 87600h."},
    "overrun": {"type": "string", "default": "5m",
      "description": "How much longer pods are taken to run whose time is up; at most 87600h."}}})json";

// Of a pod that must not use what is kept.
struct Kept : sdk::AttemptState {
  std::shared_ptr<const Reservation> reservation;
  Amounts asked;  // by resource of the reservation
  sdk::Verdict verdict;
};

class Backfill : public sdk::Plugin,
                 public sdk::PreFilterPlugin,
                 public sdk::FilterPlugin,
                 public sdk::QueueingHintPlugin,
                 public sdk::ClusterObserver {
 public:
  Backfill(const Line::Options& options, const sdk::PluginContext& context)
      : line_(kName, context.profile, options, context.cluster) {}

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    const v1alpha1::Pod& pod = attempt.pod().proto();
    const absl::Time now = attempt.now();
    const std::shared_ptr<const Reservation> reservation = line_.ReservationAt(now);
    const Unit unit = line_.UnitOf(attempt.pod().record());
    const bool is_first = reservation != nullptr && reservation->unit_id == unit.id;
    const bool keeps_off =
        reservation != nullptr && !is_first && MustKeepOff(pod, *reservation, now);

    // A part of a group would only hold room that others could use.
    if (unit.is_group && unit.complete && unit.needed > 1) {
      const int64_t fit = line_.CountThatFitNow(unit, keeps_off ? reservation.get() : nullptr);
      if (fit < unit.needed) {
        if (keeps_off) owners_.insert(reservation->unit_id);
        std::string reason =
            absl::StrCat("group ", unit.name, ": room for ", fit, " of ", unit.needed, " members");
        if (is_first && reservation->when > now)
          absl::StrAppend(&reason, ", for all from ", ClockText(reservation->when, now), " on");
        if (keeps_off)
          absl::StrAppend(&reason, " beside what is reserved for ", reservation->unit_name);
        return sdk::Verdict::Unschedulable(std::move(reason));
      }
    }
    if (is_first && reservation->when <= now) line_.NoteTrial(pod.uid());
    if (!keeps_off) return sdk::Verdict::Skip();
    owners_.insert(reservation->unit_id);
    Kept& kept = attempt.NewFilterState<Kept>();
    for (const Resource& resource : reservation->resources)
      kept.asked.push_back(resource.AskedBy(attempt.pod().usage().requests));
    kept.verdict = sdk::Verdict::Unschedulable(ReasonOf(pod, *reservation, now));
    kept.reservation = reservation;
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* kept = attempt.filter_state<Kept>();
    if (kept == nullptr) return;
    const Reservation& reservation = *kept->reservation;
    const sdk::NodeTable& table = attempt.cluster().nodes();
    uint64_t rejected = 0;
    block.ForEach([&](int i, sdk::Slot slot) {
      const Reservation::Node* const node = reservation.At(slot);
      if (node == nullptr) return;
      for (size_t r = 0; r < kept->asked.size(); ++r) {
        if (kept->asked[r] > 0 && kept->asked[r] > reservation.Spare(table, *node, r)) {
          rejected |= uint64_t{1} << i;
          return;
        }
      }
    });
    sink.RejectAll(rejected, kept->verdict);
  }

  // Room that is given back, a node that comes or grows, and whoever the room was kept for getting
  // its place or going away.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_node != nullptr) return sdk::Hint::kQueue;
    if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    const v1alpha1::Pod* const other = change.new_pod != nullptr ? change.new_pod : change.old_pod;
    if (other == nullptr) return sdk::Hint::kQueue;
    const bool had_place = !other->node_name().empty();
    if (change.action == v1alpha1::ClusterEvent::DELETE && had_place) return sdk::Hint::kQueue;
    if (change.action != v1alpha1::ClusterEvent::DELETE &&
        change.action != v1alpha1::ClusterEvent::ADD)
      return sdk::Hint::kSkip;
    return owners_.contains(line_.UnitIdOf(*other)) ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    line_.Clear();
    owners_.clear();
  }
  void OnNodeChanged(sdk::Slot) override { line_.RoomChanged(); }
  void OnNodeRemoved(sdk::Slot, const std::string&) override { line_.RoomChanged(); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    line_.PodOnNode(pod, slot);
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot) override {
    line_.PodOffNode(pod);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override { line_.SetPod(pod); }
  void OnPodRemoved(const sdk::PodRecord& pod) override { line_.RemovePod(pod); }
  void OnObjectChanged(const v1alpha1::ClusterObject*,
                       const v1alpha1::ClusterObject& object) override {
    line_.SetObject(object);
  }
  void OnObjectRemoved(const v1alpha1::ClusterObject& object) override {
    line_.RemoveObject(object);
  }
  // Nobody waits for those any more.
  void OnTick(absl::Time) override {
    if (line_.waiting() == 0) owners_.clear();
  }

 private:
  // Whether it comes after the first in line, and would be in its way at the time.
  bool MustKeepOff(const v1alpha1::Pod& pod, const Reservation& reservation, absl::Time now) const {
    if (line_.TurnOf(pod) < reservation.turn) return false;
    const RunTime run_time = line_.RunTimeOf(pod);
    return !run_time.run || now + *run_time.run > reservation.when;
  }

  std::string ReasonOf(const v1alpha1::Pod& pod, const Reservation& reservation,
                       absl::Time now) const {
    const RunTime run_time = line_.RunTimeOf(pod);
    const std::string declared = run_time.run
                                     ? absl::StrCat(DurationText(*run_time.run), " declared")
                                     : "no run time declared";
    if (reservation.when <= now)
      return absl::StrCat("node is reserved for ", reservation.unit_name, " (", declared, ")");
    return absl::StrCat("node is reserved for ", reservation.unit_name, " from ",
                        ClockText(reservation.when, now), " on (", declared, ", ",
                        DurationText(reservation.when - now), " left)");
  }

  // Who was tried is noted while pods are judged.
  mutable Line line_;
  // Ids of units that others were rejected for. Only tells which events help; a host that starts
  // anew has all pods tried.
  mutable absl::flat_hash_set<std::string> owners_;
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
  return options;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1alpha1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1alpha1::PRE_FILTER, v1alpha1::FILTER};
  d.args_schema = kArgsSchema;
  d.wake_up_events = {sdk::WakeOn("Pod", {Event::ADD, Event::DELETE, Event::UPDATE_OTHER}),
                      sdk::WakeOn("Node", {Event::ADD, Event::UPDATE_NODE_ALLOCATABLE})};
  d.needed_fields = sdk::GroupAnnotationFields();
  for (const char* key : {kRunSeconds, kStart, kEstimatedEnd})
    d.needed_fields.push_back(sdk::AnnotationField(key));
  d.custom_resources = sdk::PodGroupResources();
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<Backfill>(ReadOptions(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::backfill
