#include "plugins/gpu_load/gpu_load.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/node_names.h"
#include "plugins/gpu_load/args.h"
#include "plugins/gpu_load/placed_pods.h"

namespace outboard::gpu_load {
namespace {

constexpr char kName[] = "GPULoad";
constexpr char kSampleAgeMetric[] = "outboard_gpu_load_sample_age_seconds";
constexpr char kNodesMetric[] = "outboard_gpu_load_nodes";
constexpr char kUnknownHostsMetric[] = "outboard_gpu_load_unknown_hosts";

// The score of a node without recent samples.
constexpr int64_t kNeutral = 50;
// How often the plugin checks for a new snapshot.
constexpr absl::Duration kLookEvery = absl::Milliseconds(900);
constexpr size_t kMaxReportedErrors = 4;
constexpr size_t kMaxRejected = 100000;

// State of a pod that requests GPUs.
struct WantsGpus : sdk::AttemptState {};

// The load of a node.
struct NodeLoad {
  absl::Time sampled = absl::InfinitePast();  // Its oldest sample.
  double use = 0;
  double memory = -1;       // Below 0: unknown.
  int64_t unseen_gpus = 0;  // Of pods that these samples do not include.
  // Why pods with GPUs are rejected; success: no veto.
  sdk::Verdict veto;
};

class GpuLoad : public sdk::Plugin,
                public sdk::FilterPlugin,
                public sdk::PreScorePlugin,
                public sdk::ScorePlugin,
                public sdk::ClusterObserver {
 public:
  GpuLoad(Args args, std::shared_ptr<LoadSource> source, const sdk::PluginContext& context)
      : args_(std::move(args)),
        source_(std::move(source)),
        cluster_(context.cluster),
        pushes_(context.pushes) {
    const auto gauge = [&](const char* metric, const char* value) {
      return context.metrics->NewGauge(metric, {context.profile, value});
    };
    figures_.shown = context.metrics->enabled();
    figures_.oldest = gauge(kSampleAgeMetric, "oldest");
    figures_.newest = gauge(kSampleAgeMetric, "newest");
    figures_.measured = gauge(kNodesMetric, "measured");
    figures_.unmeasured = gauge(kNodesMetric, "unmeasured");
    figures_.vetoed = gauge(kNodesMetric, "vetoed");
    figures_.unknown_hosts = context.metrics->NewGauge(kUnknownHostsMetric, {context.profile});
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    Look(attempt.now());
    if (vetoed_ == 0 || !Wants(attempt)) return;
    bool rejected = false;
    block.ForEach([&](int i, sdk::Slot slot) {
      if (slot >= loads_.size() || loads_[slot].veto.ok()) return;
      sink.RejectWith(i, loads_[slot].veto);
      rejected = true;
    });
    if (rejected && rejected_.size() < kMaxRejected)
      rejected_.insert(std::string(attempt.pod().uid()));
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    if (args_.gpus.DemandOf(attempt.pod().proto()) == 0) return sdk::Verdict::Skip();
    Look(attempt.now());
    return sdk::Verdict::Success();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(cluster_);
    const absl::Time oldest = attempt.now() - args_.reader.query.max_sample_age;
    const bool logs = VLOG_IS_ON(4);
    if ((snapshot_ == nullptr || snapshot_->hosts.empty()) && !logs) {
      std::fill(raw.begin(), raw.end(), kNeutral);
      return sdk::Verdict::Success();
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const sdk::Slot slot = nodes[i];
      const bool known = slot < loads_.size() && loads_[slot].sampled >= oldest;
      raw[i] = known ? ScoreOf(loads_[slot], gpus.Allocatable(slot)) : kNeutral;
      if (logs) Log(attempt, slot, known, raw[i]);
    }
    return sdk::Verdict::Success();
  }

  void OnReset() override {
    loads_.clear();
    there_.clear();
    placed_.Clear();
    rejected_.clear();
    vetoed_ = 0;
    stale_ = true;
    looked_ = absl::InfinitePast();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= loads_.size()) {
      loads_.resize(slot + 1);
      there_.resize(slot + 1);
    }
    if (std::exchange(there_[slot], 1) != 0) return;
    loads_[slot] = NodeLoad();
    stale_ = true;
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string&) override {
    // The next node in the slot is another one.
    there_[slot] = 0;
    loads_[slot] = NodeLoad();
    stale_ = true;
  }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    placed_.Added(pod, slot, now_);
    CountUnseen(slot);
    rejected_.erase(pod.pod.uid());
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    placed_.Removed(pod, slot);
    CountUnseen(slot);
  }
  void OnPodChanged(const sdk::PodRecord& pod) override { placed_.Changed(pod); }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    placed_.Gone(pod);
    rejected_.erase(pod.pod.uid());
  }
  void OnTick(absl::Time now) override {
    Look(now);
    if (figures_.shown) ShowFigures(now);
  }

 private:
  struct Figures {
    bool shown = false;
    std::shared_ptr<sdk::Gauge> oldest, newest, measured, unmeasured, vetoed, unknown_hosts;
  };

  bool Wants(const sdk::Attempt& attempt) const {
    if (attempt.filter_state<WantsGpus>() != nullptr) return true;
    if (args_.gpus.DemandOf(attempt.pod().proto()) == 0) return false;
    attempt.NewFilterState<WantsGpus>();
    return true;
  }

  // 0..100; 100: idle, and all memory free. Pods not in the samples count as using their GPUs.
  int64_t ScoreOf(const NodeLoad& load, int64_t gpus) const {
    const double unseen = gpus > 0 ? args_.estimated_use * static_cast<double>(load.unseen_gpus) /
                                         static_cast<double>(gpus)
                                   : 0;
    const double use = std::min(1.0, load.use + unseen);
    const double memory = load.memory < 0 ? use : std::min(1.0, load.memory + unseen);
    return std::lround(100 * (1 - (1 - args_.memory_weight) * use - args_.memory_weight * memory));
  }

  void CountUnseen(sdk::Slot slot) {
    if (slot >= loads_.size()) return;
    NodeLoad& load = loads_[slot];
    load.unseen_gpus = placed_.GpusPlacedAfter(slot, load.sampled - args_.settling_time);
  }

  // About once a second: reads a new snapshot, new nodes, and the end of vetoes. All other calls
  // only compare two times.
  void Look(absl::Time now) const {
    now_ = now;
    if (now - looked_ < kLookEvery && now >= looked_) return;
    looked_ = now;
    std::shared_ptr<const LoadSnapshot> latest = source_ == nullptr ? nullptr : source_->Latest();
    if (latest == snapshot_ && now < next_end_ && !stale_) return;
    snapshot_ = std::move(latest);
    stale_ = false;
    TakeIn(now);
  }

  void TakeIn(absl::Time now) const {
    std::vector<sdk::Slot> were_vetoed;
    for (sdk::Slot slot = 0; slot < loads_.size(); ++slot) {
      if (!loads_[slot].veto.ok()) were_vetoed.push_back(slot);
      loads_[slot] = NodeLoad();
    }
    unknown_hosts_ = 0;
    next_end_ = absl::InfiniteFuture();
    if (snapshot_ != nullptr) {
      prometheus::NodeNames names(cluster_);
      for (const HostLoad& host : snapshot_->hosts) TakeIn(host, &names);
      TakeInVetoes(now, &names);
    }
    for (sdk::Slot slot = 0; slot < loads_.size(); ++slot) {
      NodeLoad& load = loads_[slot];
      load.unseen_gpus = placed_.GpusPlacedAfter(slot, load.sampled - args_.settling_time);
    }
    vetoed_ = std::count_if(loads_.begin(), loads_.end(),
                            [](const NodeLoad& load) { return !load.veto.ok(); });
    const bool some_ended = std::any_of(were_vetoed.begin(), were_vetoed.end(),
                                        [&](sdk::Slot slot) { return loads_[slot].veto.ok(); });
    if (some_ended) WakeRejected();
  }

  void TakeIn(const HostLoad& host, prometheus::NodeNames* names) const {
    const std::optional<sdk::Slot> slot = SlotOf(host.names, names);
    if (!slot) {
      if (++unknown_hosts_ == 1 && !std::exchange(warned_of_unknown_, true)) {
        LOG(WARNING) << kName << ": sample ignored: no node matches its host "
                     << (host.names.empty() ? "" : host.names[0])
                     << " (see nodeLabels); further ones are only counted";
      }
      return;
    }
    NodeLoad& load = loads_[*slot];
    const absl::Time sampled = snapshot_->asked - host.age;
    if (sampled <= load.sampled) return;  // Two exporters report the host.
    load.sampled = sampled;
    load.use = host.use;
    load.memory = host.memory.value_or(-1);
  }

  void TakeInVetoes(absl::Time now, prometheus::NodeNames* names) const {
    // By the GPU's number, with the text of the reason.
    absl::flat_hash_map<sdk::Slot, std::vector<std::pair<int64_t, std::string>>> errors;
    for (const Veto& veto : snapshot_->vetoes) {
      if (veto.until <= now) continue;
      const std::optional<sdk::Slot> slot = SlotOf(veto.names, names);
      if (!slot) continue;
      next_end_ = std::min(next_end_, veto.until);
      int64_t number = 0;
      if (!absl::SimpleAtoi(veto.gpu, &number)) number = INT64_MAX;
      errors[*slot].push_back(
          {number, absl::StrCat("XID ", veto.code,
                                veto.gpu.empty() ? "" : absl::StrCat(" on GPU ", veto.gpu))});
    }
    for (auto& [slot, of_node] : errors) {
      std::sort(of_node.begin(), of_node.end());
      std::string reason = "GPU error: ";
      for (size_t i = 0; i < std::min(of_node.size(), kMaxReportedErrors); ++i)
        absl::StrAppend(&reason, i == 0 ? "" : ", ", of_node[i].second);
      if (of_node.size() > kMaxReportedErrors)
        absl::StrAppend(&reason, " and ", of_node.size() - kMaxReportedErrors, " more");
      loads_[slot].veto = sdk::Verdict::Unresolvable(std::move(reason));
    }
  }

  std::optional<sdk::Slot> SlotOf(const std::vector<std::string>& of_sample,
                                  prometheus::NodeNames* names) const {
    const std::optional<sdk::Slot> slot = names->Find(of_sample);
    if (!slot || *slot >= loads_.size()) return std::nullopt;
    return slot;
  }

  void WakeRejected() const {
    if (rejected_.empty()) return;
    const std::vector<std::string> uids(rejected_.begin(), rejected_.end());
    rejected_.clear();
    pushes_->Activate(uids);
  }

  void ShowFigures(absl::Time now) {
    absl::Time oldest = absl::InfiniteFuture(), newest = absl::InfinitePast();
    int64_t measured = 0, unmeasured = 0;
    const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(cluster_);
    for (const sdk::Slot slot : cluster_.node_order()) {
      if (slot >= loads_.size() || gpus.Allocatable(slot) == 0) continue;
      const absl::Time sampled = loads_[slot].sampled;
      const bool fresh = sampled >= now - args_.reader.query.max_sample_age;
      ++(fresh ? measured : unmeasured);
      if (sampled == absl::InfinitePast()) continue;
      oldest = std::min(oldest, sampled);
      newest = std::max(newest, sampled);
    }
    figures_.measured->Set(static_cast<double>(measured));
    figures_.unmeasured->Set(static_cast<double>(unmeasured));
    figures_.vetoed->Set(static_cast<double>(vetoed_));
    figures_.unknown_hosts->Set(static_cast<double>(unknown_hosts_));
    if (newest == absl::InfinitePast()) return;
    figures_.oldest->Set(absl::ToDoubleSeconds(now - oldest));
    figures_.newest->Set(absl::ToDoubleSeconds(now - newest));
  }

  void Log(const sdk::Attempt& attempt, sdk::Slot slot, bool known, int64_t score) const {
    const std::string& node = cluster_.node(slot).name();
    if (!known) {
      VLOG(4) << kName << ": node " << node << " pod " << attempt.pod().uid()
              << ": no recent sample, score " << score;
      return;
    }
    const NodeLoad& load = loads_[slot];
    VLOG(4) << kName << ": node " << node << " pod " << attempt.pod().uid() << ": use " << load.use
            << ", memory " << load.memory << ", " << attempt.now() - load.sampled << " ago, and "
            << load.unseen_gpus << " GPUs placed since, score " << score;
  }

  const Args args_;
  const std::shared_ptr<LoadSource> source_;  // Null with invalid args.
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  Figures figures_;
  PlacedPods placed_{&args_.gpus};

  // Derived from the snapshot, and updated on use.
  mutable std::shared_ptr<const LoadSnapshot> snapshot_;
  mutable std::vector<NodeLoad> loads_;  // By slot.
  std::vector<char> there_;              // By slot: whether a node is there.
  mutable bool stale_ = true;            // Nodes were added or removed.
  mutable absl::Time now_ = absl::UnixEpoch();
  mutable absl::Time looked_ = absl::InfinitePast();
  mutable absl::Time next_end_ = absl::InfiniteFuture();  // Of a veto.
  mutable int64_t vetoed_ = 0;
  mutable int64_t unknown_hosts_ = 0;
  mutable bool warned_of_unknown_ = false;
  // Pods that a veto rejected, by uid: they are retried when a veto ends.
  mutable absl::flat_hash_set<std::string> rejected_;
};

}  // namespace

sdk::PluginDescriptor DescriptorWith(MakeSource make_source) {
  using Event = v1beta1::ClusterEvent;
  using Type = sdk::MetricType;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_PRE_SCORE,
                        v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  // The plugin itself reports the end of a veto.
  d.wake_up_events = {sdk::WakeOn("Node", {Event::ACTION_ADD})};
  d.metrics = {
      {kReadsMetric,
       Type::kCounter,
       {"result"},
       "Readings of Prometheus by result: ok, unreachable, timeout, status, too_large, token, "
       "malformed, error, no_samples."},
      {kSampleAgeMetric,
       Type::kGauge,
       {"profile", "which"},
       "Age of the oldest and of the newest sample of a node, including samples that are too old."},
      {kNodesMetric,
       Type::kGauge,
       {"profile", "state"},
       "Nodes with GPUs by state: measured, unmeasured (no sample, or too old); and vetoed for an "
       "XID."},
      {kUnknownHostsMetric,
       Type::kGauge,
       {"profile"},
       "Hosts in samples that are not nodes of this cluster; see nodeLabels."}};
  d.signature = {{"spec.containers"}};
  d.maturity = sdk::Maturity::kAlpha;
  d.create =
      [make_source = std::move(make_source)](
          const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    Args args = ReadArgs(context.args->root());
    std::shared_ptr<LoadSource> source;
    if (context.args->ok()) source = make_source(args.reader, context.metrics);
    return std::make_unique<GpuLoad>(std::move(args), std::move(source), context);
  };
  return d;
}

sdk::PluginDescriptor Descriptor() { return DescriptorWith(&LoadReader::Shared); }

}  // namespace outboard::gpu_load
