#include "plugins/gpu_packing/gpu_packing.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/known_verdicts.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/gpu_packing/fragmentation.h"
#include "plugins/gpu_packing/gpu_demand.h"
#include "plugins/gpu_packing/node_rooms.h"
#include "plugins/gpu_packing/workload.h"

namespace outboard::gpu_packing {
namespace {

constexpr char kName[] = "GPUPacking";
constexpr char kGpusMetric[] = "outboard_gpu_packing_gpus";
constexpr char kIdleMetric[] = "outboard_gpu_packing_idle_gpus";
constexpr char kFragmentedMetric[] = "outboard_gpu_packing_fragmented_gpus";
// How often the metrics are computed: less often than ticks, more often than scrapes.
constexpr absl::Duration kFiguresEvery = absl::Seconds(5);

// Without its beginning, which ends with kGpuResourceNamesSchema.
const char kArgsSchema[] = R"json(,
    "targetWorkload": {"type": "array", "maxItems": 256,
      "description": "The pods to keep room for; empty: learnt from the cluster's pods.",
      "items": {"type": "object", "additionalProperties": false, "properties": {
        "gpus": {"type": "integer", "minimum": 0, "maximum": 128, "default": 0,
          "description": "GPUs; 0: a pod without GPUs."},
        "gpuMilli": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1000,
          "description": "Thousandths of each GPU."},
        "cpuMillis": {"type": "integer", "minimum": 0, "default": 0, "description": "CPU."},
        "memoryMiB": {"type": "integer", "minimum": 0, "default": 0, "description": "Memory."},
        "models": {"type": "array", "items": {"type": "string"},
          "description": "Values of modelLabel on which it can run; empty: any."},
        "weight": {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9, "default": 1,
          "description": "Relative frequency of this kind."}}}},
    "maxShapes": {"type": "integer", "minimum": 1, "maximum": 256, "default": 64,
      "description": "Maximum number of kinds of pods to learn."},
    "coveragePercent": {"type": "integer", "minimum": 1, "maximum": 100, "default": 95,
      "description": "Learn the most frequent kinds until they cover this percentage of all pods."},
    "modelLabel": {"type": "string", "default": "nvidia.com/gpu.product",
      "description": "Node label with the model of the GPUs."},
    "podsWithoutGPUs": {"enum": ["Score", "Skip"], "default": "Score",
      "description": "Whether to keep pods without GPUs off the CPU that idle GPUs need."},
    "sharing": {"type": "object", "additionalProperties": false, "properties": {
      "memoryResource": {"type": "string", "default": "nvidia.com/gpumem",
        "description": "MiB of each GPU."},
      "memoryPercentageResource": {"type": "string", "default": "nvidia.com/gpumem-percentage",
        "description": "Percent of the memory of each GPU."},
      "coresResource": {"type": "string", "default": "nvidia.com/gpucores",
        "description": "Percent of the computing power of each GPU."},
      "reservationNamespace": {"type": "string", "default": "kai-resource-reservation",
        "description": "Namespace of pods that only hold a GPU for pods that share it."}}}}})json";

// A pod's input to the measure. Equal for interchangeable pods.
struct Wanted {
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  PodGpus gpus;
  friend bool operator==(const Wanted&, const Wanted&) = default;
};

// Scores for one kind of pod, so that only changed nodes are scored again.
struct KnownScores {
  Wanted wanted;
  uint64_t used = 0;      // The last use.
  uint64_t workload = 0;  // The workload that they are valid for.
  sdk::NodeMemo<int8_t> by_node;
};
// 640 kB at 5,000 nodes.
constexpr size_t kMaxKnown = 64;

// The numbers of the reason why a node has no room.
struct Lack {
  int32_t able = 0;
  int32_t largest = 0;
  int32_t milli = 0;
  int64_t memory_mib = 0;
  bool for_good = false;  // Evicting pods does not help.
  friend bool operator==(const Lack&, const Lack&) = default;
};

struct State : sdk::AttemptState {
  Wanted wanted;
  sdk::KnownVerdicts<Lack> verdicts;
  size_t best = 0;  // Index in the scored nodes.
};

struct Args {
  GpuDemandReader reader;
  Workload workload;
  bool skips_pods_without_gpus = false;
};

class GpuPacking : public sdk::Plugin,
                   public sdk::PreFilterPlugin,
                   public sdk::FilterPlugin,
                   public sdk::PreScorePlugin,
                   public sdk::ScorePlugin,
                   public sdk::QueueingHintPlugin,
                   public sdk::ClusterObserver {
 public:
  GpuPacking(Args args, const sdk::PluginContext& context)
      : reader_(std::move(args.reader)),
        workload_(std::move(args.workload)),
        skips_pods_without_gpus_(args.skips_pods_without_gpus),
        cluster_(context.cluster),
        rooms_(&reader_, &workload_, &malformed_, cluster_) {
    figures_.shown = context.metrics->enabled();
    figures_.gpus = context.metrics->NewGauge(kGpusMetric, {context.profile});
    figures_.idle = context.metrics->NewGauge(kIdleMetric, {context.profile});
    figures_.fragmented = context.metrics->NewGauge(kFragmentedMetric, {context.profile});
  }

  sdk::Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override {
    const Wanted wanted = WantedBy(attempt.pod());
    if (wanted.gpus.gpus == 0) return sdk::Verdict::Skip();
    attempt.NewFilterState<State>().wanted = wanted;
    return sdk::Verdict::Success();
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    auto* state = attempt.filter_state<State>();
    if (state == nullptr) return;
    const PodGpus& wanted = state->wanted.gpus;
    const bool wants_whole = wanted.milli == kWholeGpu && wanted.memory_mib == 0;
    sdk::KnownVerdicts<Lack>::Block rejections(&state->verdicts, &sink);
    const auto has_room = [&](sdk::Slot slot) {
      return wants_whole && rooms_.WholeAt(slot) >= wanted.gpus;
    };
    block.ForEachThat([&](sdk::Slot slot) { return !has_room(slot); },
                      [&](int i, sdk::Slot slot) {
                        const GpuRoom& room = rooms_.At(slot);
                        if (room.opaque) {
                          // Only the node's resources decide; NodeResourcesFit compares them.
                          if (wanted.annotated) sink.Reject(i, not_shared_);
                          return;
                        }
                        const int32_t milli = wanted.MilliOn(room.memory_mib);
                        // By number: a node without GPUs has no layout.
                        int32_t able = room.whole;
                        if (milli != kWholeGpu) {
                          able = 0;
                          for (const int32_t idle : room.idle) able += idle >= milli ? 1 : 0;
                        }
                        if (able >= wanted.gpus) return;
                        const Lack lack = LackOf(wanted, room, milli, able);
                        rejections.Reject(i, lack, [&] { return VerdictOf(wanted, lack); });
                      });
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    if (!rooms_.any_gpus()) return sdk::Verdict::Skip();
    const auto* filtered = attempt.filter_state<State>();
    const Wanted wanted = filtered != nullptr ? filtered->wanted : WantedBy(attempt.pod());
    if (wanted.gpus.gpus == 0 && skips_pods_without_gpus_) return sdk::Verdict::Skip();
    attempt.NewScoreState<State>().wanted = wanted;
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    auto* state = attempt.score_state<State>();
    if (state == nullptr) {
      std::fill(raw.begin(), raw.end(), 0);
      return sdk::Verdict::Success();
    }
    if (workload_.learns() && workload_number_ == 0) Learn();
    KnownScores& known = Known(state->wanted);
    scores_.resize(nodes.size());
    known.by_node.Of(cluster_.nodes(), nodes, absl::MakeSpan(scores_),
                     [&](sdk::Slot slot) { return ScoreSlot(slot, state->wanted); });
    int8_t highest = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      raw[i] = scores_[i];
      highest = std::max(highest, scores_[i]);
    }
    state->best = Best(nodes, highest);
    if (VLOG_IS_ON(4)) {
      for (size_t i = 0; i < nodes.size(); ++i) Log(attempt.pod(), nodes[i], raw[i]);
    }
    return sdk::Verdict::Success();
  }

  // The best of equal nodes gets one more point: so packing and name decide, independent of later
  // tie breaks.
  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    const auto* state = attempt.score_state<State>();
    if (state != nullptr && !nodes.empty()) ++scores[state->best];
    return sdk::Verdict::Success();
  }

  // Helpful events: a node with GPUs; a pod that releases GPUs, or turns out to use other ones.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_node != nullptr) {
      int64_t gpus = 0;
      for (const std::string& name : reader_.gpus().names()) {
        const auto& extended = change.new_node->allocatable().scalar();
        const auto it = extended.find(name);
        if (it != extended.end()) gpus += it->second;
      }
      const sdk::GpuClaims& claims = reader_.gpus().claims();
      if (claims.active()) gpus += claims.DevicesOn(change.new_node->name());
      return gpus > 0 ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    }
    if (change.old_pod == nullptr ||
        (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()))
      return sdk::Hint::kQueue;
    sdk::PodRequestsOptions options;
    options.use_status = true;
    const PodGpus left = reader_.Demand(
        *change.old_pod, sdk::ComputePodRequests(*change.old_pod, options), &malformed_);
    return left.gpus > 0 ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    reader_.gpus().claims().Clear();
    rooms_.Clear();
    workload_.Clear();
    known_.clear();
    malformed_.Clear();
    if (workload_.learns()) workload_number_ = 0;
  }
  void OnNodeChanged(sdk::Slot slot) override { rooms_.OnNodeChanged(slot); }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    rooms_.OnNodeRemoved(slot, name);
  }
  void OnObjectChanged(const v1beta1::ClusterObject*,
                       const v1beta1::ClusterObject& object) override {
    sdk::GpuClaims& claims = reader_.gpus().claims();
    const bool counted = claims.active();
    if (claims.Set(object)) ClaimsChanged(counted, object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    sdk::GpuClaims& claims = reader_.gpus().claims();
    const bool counted = claims.active();
    if (claims.Remove(object)) ClaimsChanged(counted, object);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override {
    if (!workload_.learns() || workload_.Knows(pod)) return;
    workload_.Count(pod, reader_.Demand(pod.pod, pod.usage.requests, &malformed_));
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    workload_.Forget(pod);
    if (malformed_.warned() > 0)
      malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }
  void OnTick(absl::Time now) override {
    if (workload_.learns() && workload_.stale()) Learn();
    if (figures_.shown && now - figures_.found >= kFiguresEvery) {
      figures_.found = now;
      FindFigures();
    }
  }

 private:
  // `counted`: whether claims counted before.
  void ClaimsChanged(bool counted, const v1beta1::ClusterObject& object) {
    known_.clear();
    rooms_.OnClaimsChanged(counted != reader_.gpus().claims().active() ||
                           sdk::IsResourceSlice(object));
  }
  // The metrics' state.
  struct Figures {
    bool shown = false;
    absl::Time found = absl::InfinitePast();
    std::shared_ptr<sdk::Gauge> gpus, idle, fragmented;
  };

  // Nodes without a change keep their cached fragmentation.
  void FindFigures() {
    if (workload_.learns() && workload_number_ == 0) Learn();
    int64_t gpus = 0, idle_milli = 0;
    double fragmented_milli = 0;
    for (const sdk::Slot slot : cluster_.node_order()) {
      const GpuRoom& room = rooms_.At(slot);
      if (room.opaque || room.gpus == 0) continue;
      gpus += room.gpus;
      idle_milli += room.idle_total;
      fragmented_milli += rooms_.FragmentationAt(slot, workload_number_);
    }
    figures_.gpus->Set(static_cast<double>(gpus));
    figures_.idle->Set(static_cast<double>(idle_milli) / kWholeGpu);
    figures_.fragmented->Set(fragmented_milli / kWholeGpu);
  }

  Wanted WantedBy(const sdk::PodView& pod) const {
    // Without a status, the requests counted by the cluster cache are the pod's.
    const bool is_counted =
        pod.proto().container_statuses().empty() && !pod.proto().has_pod_actual_requests();
    const sdk::Resources computed =
        is_counted ? sdk::Resources() : sdk::ComputePodRequests(pod.proto());
    const sdk::Resources& requests = is_counted ? pod.usage().requests : computed;
    Wanted wanted;
    wanted.cpu_millis = requests.cpu_millis;
    wanted.memory_bytes = requests.memory_bytes;
    std::set<std::string> allocated = reader_.gpus().claims().AllocatedOf(pod.proto());
    wanted.gpus = reader_.Demand(pod.proto(), requests, &malformed_, &allocated);
    return wanted;
  }

  // Contains only the numbers that the reason's text needs.
  static Lack LackOf(const PodGpus& wanted, const GpuRoom& room, int32_t milli, int32_t able) {
    Lack lack;
    lack.milli = milli;
    lack.for_good = wanted.gpus > room.gpus || milli > kWholeGpu;
    if (milli > kWholeGpu) {
      lack.memory_mib = room.memory_mib;
      return lack;
    }
    lack.able = able;
    if (milli < kWholeGpu) {
      for (const int32_t idle : room.idle) lack.largest = std::max(lack.largest, idle);
    }
    return lack;
  }
  static sdk::Verdict VerdictOf(const PodGpus& wanted, const Lack& lack) {
    std::string reason;
    if (lack.milli == kWholeGpu) {
      reason = absl::StrCat("insufficient GPU: need ", wanted.gpus, ", available ", lack.able);
    } else if (lack.milli > kWholeGpu) {
      reason = absl::StrCat("insufficient GPU memory: need ", wanted.memory_mib, "MiB, available ",
                            lack.memory_mib, "MiB");
    } else {
      reason = absl::StrCat("insufficient shared GPU: need ", wanted.gpus, " with ", lack.milli,
                            "m, available ", lack.able, ", most on one ", lack.largest, "m");
    }
    return lack.for_good ? sdk::Verdict::Unresolvable(reason) : sdk::Verdict::Unschedulable(reason);
  }

  void Learn() const {
    if (workload_.Learn(rooms_.lowest_memory_mib()) || workload_number_ == 0) ++workload_number_;
  }

  // The scores for the current workload.
  KnownScores& Known(const Wanted& wanted) const {
    KnownScores& known = Find(wanted);
    known.used = ++uses_;
    if (known.workload != workload_number_) known.by_node.Clear();
    known.workload = workload_number_;
    return known;
  }
  KnownScores& Find(const Wanted& wanted) const {
    KnownScores* oldest = nullptr;
    for (KnownScores& known : known_) {
      if (known.wanted == wanted) return known;
      if (oldest == nullptr || known.used < oldest->used) oldest = &known;
    }
    if (known_.size() < kMaxKnown) {
      oldest = &known_.emplace_back();
    } else {
      oldest->by_node.Clear();
    }
    oldest->wanted = wanted;
    return *oldest;
  }

  int8_t ScoreSlot(sdk::Slot slot, const Wanted& wanted) const {
    const GpuRoom& room = rooms_.At(slot);
    // The winner of a tie must not exceed the highest score.
    return static_cast<int8_t>(std::min(sdk::kMaxScore - 1, GainScore(Gain(slot, room, wanted))));
  }
  // Of the nodes with the highest score, the fullest one; of those the first by name.
  size_t Best(absl::Span<const sdk::Slot> nodes, int8_t highest) const {
    const std::vector<uint32_t>& ranks = rooms_.name_ranks();
    size_t best = 0;
    std::optional<int64_t> packing_of_best;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (scores_[i] != highest) continue;
      const int64_t packing = PackingKey(nodes[i]);
      if (packing_of_best &&
          (packing < *packing_of_best ||
           (packing == *packing_of_best && ranks[nodes[i]] > ranks[nodes[best]]))) {
        continue;
      }
      best = i;
      packing_of_best = packing;
    }
    return best;
  }

  double Gain(sdk::Slot slot, const GpuRoom& room, const Wanted& wanted) const {
    if (room.idle_total == 0) return 0;
    const NodeRoom before = rooms_.RoomFor(slot, room);
    if (wanted.gpus.gpus == 0 &&
        before.cpu_millis - wanted.cpu_millis >= workload_.highest_cpu_millis() &&
        before.memory_bytes - wanted.memory_bytes >= workload_.highest_memory_bytes()) {
      return 0;  // Every shape that could run still can.
    }
    Demand demand;
    demand.cpu_millis = wanted.cpu_millis;
    demand.memory_bytes = wanted.memory_bytes;
    demand.gpus = wanted.gpus.gpus;
    demand.milli = wanted.gpus.MilliOn(room.memory_mib);
    return FragmentationGain(before, workload_.shapes(),
                             rooms_.FragmentationAt(slot, workload_number_), demand, &scratch_);
  }

  // Best fit: the less free CPU and GPU the node has, the better.
  int64_t PackingKey(sdk::Slot slot) const {
    constexpr double kScale = 1e9;
    return -static_cast<int64_t>(std::clamp(rooms_.LeftOn(slot) / 2, -1e6, 1e6) * kScale);
  }

  void Log(const sdk::PodView& pod, sdk::Slot slot, int64_t score) const {
    const GpuRoom& room = rooms_.At(slot);
    VLOG(4) << "GPUPacking: node " << cluster_.node(slot).name() << " pod " << pod.uid()
            << ": idle " << room.idle_total << "m of " << room.gpus << " GPUs, fragmentation "
            << rooms_.FragmentationAt(slot, workload_number_) << "m, gain "
            << Gain(slot, room, WantedBy(pod)) << "m, score " << score << ", packing "
            << PackingKey(slot);
  }

  const sdk::Verdict not_shared_ =
      sdk::Verdict::Unresolvable("node does not share GPUs by gpu-fraction or gpu-memory");
  const GpuDemandReader reader_;
  // Derived from the cluster cache, and updated on use.
  mutable Workload workload_;
  const bool skips_pods_without_gpus_;
  const sdk::ClusterView cluster_;
  mutable sdk::MalformedValues malformed_{kName};
  mutable NodeRooms rooms_;
  // Increases with every change of the workload; 0: not learnt yet.
  mutable uint64_t workload_number_ = workload_.learns() ? 0 : 1;
  mutable std::vector<KnownScores> known_;
  mutable uint64_t uses_ = 0;
  mutable std::vector<int8_t> scores_;  // Of the scored nodes, in their order.
  mutable Scratch scratch_;
  Figures figures_;
};

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.reader = GpuDemandReader::Read(root);
  args.workload = Workload::Read(root);
  const std::string without = root.String("podsWithoutGPUs", "Score");
  if (without != "Score" && without != "Skip")
    root.Problem("podsWithoutGPUs", sdk::NotSupported(without, {"Score", "Skip"}));
  args.skips_pods_without_gpus = without == "Skip";
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
                        v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = absl::StrCat(
      R"json({"type": "object", "additionalProperties": false, "properties": {
    )json",
      sdk::kGpuResourceNamesSchema, kArgsSchema);
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_SCALE_DOWN,
                          Event::ACTION_UPDATE_POD_LABEL, Event::ACTION_UPDATE_OTHER}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE,
                           Event::ACTION_UPDATE_NODE_LABEL})};
  sdk::DeclareGpuClaims(&d.declared_resources);
  for (const char* key :
       {kFractionAnnotation, kMemoryAnnotation, kDevicesAnnotation, sdk::kHamiDevicesAnnotation}) {
    d.needed_fields.push_back(sdk::AnnotationField(key));
  }
  d.signature =
      sdk::SignedParts(d.needed_fields, {"spec.containers", "spec.resourceClaims",
                                         absl::StrCat("metadata.labels['", kGroupLabel, "']")});
  using Type = sdk::MetricType;
  d.metrics = {
      {kGpusMetric, Type::kGauge, {"profile"}, "Number of GPUs on nodes that GPUPacking lays out."},
      {kIdleMetric, Type::kGauge, {"profile"}, "Idle GPUs on these nodes, including shares."},
      {kFragmentedMetric,
       Type::kGauge,
       {"profile"},
       "Idle GPUs that a pod of the target workload cannot use, on average over the workload: the "
       "FGD measure."}};
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<GpuPacking>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::gpu_packing
