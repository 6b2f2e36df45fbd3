#include "plugins/topology_aware_gpu_gate/topology_aware_gpu_gate.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/log_name.h"
#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/node_facts/unknown_nodes.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/topology_aware_gpu_gate/gpu_islands.h"
#include "plugins/topology_aware_gpu_gate/node_topology.h"
#include "plugins/topology_aware_gpu_gate/parallelism.h"

namespace outboard::topology_aware_gpu_gate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kName[] = "TopologyAwareGPUGate";
constexpr char kUnknownNodesMetric[] = "outboard_topology_aware_gpu_gate_unknown_nodes";
constexpr char kMayFit[] = "MayFit", kMustFit[] = "MustFit";

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "requiredTopologies": {"type": "array", "minItems": 1,
      "items": {"enum": ["nvlink", "nvswitch", "pcie"]}, "default": ["nvlink", "nvswitch"],
      "description": "Topologies that tensor-parallel pods accept."},
    "unknownDevices": {"enum": ["MayFit", "MustFit"], "default": "MayFit",
      "description": "If the ids of GPUs in use are unknown: whether the pod may fit an island, or must fit for every arrangement."},
    "unknown": {"enum": ["pass", "reject", "score-last"], "default": "pass",
      "description": "What happens with nodes of which no component publishes how their GPUs are connected."},
    "slowCall": {"type": "string",
      "description": "Log a warning for every pod for which Filter takes longer. The host has a limit for all plugins: --slow-plugin-call."},
    )json",
                      sdk::kGpuResourceNamesSchema, ",\n    ", sdk::kNodeFactsSchema, "}}");
}

struct Args {
  sdk::GpuResources gpus;
  std::vector<Topology> required_topologies;
  bool must_fit = false;
  sdk::OnUnknown unknown = sdk::OnUnknown::kPass;
  absl::Duration slow_call = absl::InfiniteDuration();  // Only the host's limit.
  sdk::NodeFactsOptions facts;
};

// A pod's request.
struct Demand {
  int64_t gpus = 0;
  Parallelism parallelism;
  bool concerned() const { return gpus > 1 && parallelism.any(); }
};

struct FilterState : sdk::AttemptState {
  Demand demand;
  sdk::GpuColumnIds gpu_columns;
  sdk::Verdict no_room, no_island;  // The same text; no_room if evicting pods helps.
  absl::Duration taken;
  bool warned = false;
  std::vector<IslandUse> islands;  // Of the node being checked; a member to reuse its memory.
};

class TopologyAwareGpuGate : public sdk::Plugin,
                             public sdk::FilterPlugin,
                             public sdk::PreScorePlugin,
                             public sdk::ScorePlugin,
                             public sdk::QueueingHintPlugin,
                             public sdk::ClusterObserver {
 public:
  TopologyAwareGpuGate(Args args, const sdk::PluginContext& context)
      : args_(std::move(args)),
        cluster_(context.cluster),
        facts_(args_.facts),
        unknown_nodes_(kName, "how the GPUs are connected",
                       args_.unknown == sdk::OnUnknown::kReject
                           ? "parallel pods do not use such nodes"
                           : "parallel pods may use such nodes",
                       context.metrics->NewGauge(kUnknownNodesMetric, {context.profile})) {}

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override;
  // Scores only with `unknown: score-last`: nodes of which nothing is known get 0.
  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    if (args_.unknown != sdk::OnUnknown::kScoreLast || unknown_nodes_.count() == 0)
      return sdk::Verdict::Skip();
    return DemandOf(attempt.pod().proto()).concerned() ? sdk::Verdict::Success()
                                                       : sdk::Verdict::Skip();
  }
  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const bool scores = !PreScore(attempt, nodes).skip();
    for (size_t i = 0; i < nodes.size(); ++i)
      raw[i] = scores && !topologies_[nodes[i]].unknown ? sdk::kMaxScore : 0;
    return sdk::Verdict::Success();
  }
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override;

  void OnReset() override {
    facts_.Clear();
    args_.gpus.claims().Clear();
    unknown_nodes_.Clear();
    topologies_.clear();
    columns_.clear();
    roomiest_.Clear();
    known_gpus_.clear();
    known_pods_.clear();
    pod_gpus_.clear();
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= topologies_.size()) {
      topologies_.resize(slot + 1);
      columns_.resize(slot + 1);
      pod_gpus_.resize(slot + 1);
    }
    const v1beta1::Node& node = cluster_.node(slot).proto();
    const std::string object = absl::StrCat("node ", node.name());
    std::vector<sdk::MalformedLabel> malformed;
    topologies_[slot] = TopologyOf(facts_.Of(node, &malformed), PassesUnknown());
    for (const sdk::MalformedLabel& label : malformed)
      malformed_.Warn(object, label.key, label.value, label.wanted);
    const int64_t allocatable = AllocatableOf(node);
    unknown_nodes_.Set(slot, node.name(), topologies_[slot].unknown && allocatable > 1);
    pod_gpus_[slot] = sdk::PodGpusOfNode(node, &malformed_);
    columns_[slot] = NodeColumn();
    columns_[slot].topology_will_do = TopologyWillDo(topologies_[slot]);
    columns_[slot].largest_island = topologies_[slot].LargestIsland(allocatable);
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    topologies_[slot] = NodeTopology();
    pod_gpus_[slot].clear();
    columns_[slot] = NodeColumn();
    unknown_nodes_.Forget(slot);
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    const bool counted = args_.gpus.claims().active();
    if (args_.gpus.claims().Set(object)) ClaimsChanged(counted);
    ReadAgain(facts_.SetObject(object));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    const bool counted = args_.gpus.claims().active();
    if (args_.gpus.claims().Remove(object)) ClaimsChanged(counted);
    ReadAgain(facts_.RemoveObject(object));
  }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    if (pod.pod.annotations().empty()) return;
    const int64_t demand = args_.gpus.DemandOf(pod.pod);
    const auto gpus = sdk::GpusOfPod(pod.pod, demand, &malformed_);
    if (!gpus) return;
    known_gpus_[&pod] = {*gpus, std::min<int64_t>(demand, std::popcount(*gpus))};
    if (slot >= known_pods_.size()) known_pods_.resize(slot + 1);
    ++known_pods_[slot];
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& pod, sdk::Slot slot) override {
    if (known_gpus_.erase(&pod) > 0) --known_pods_[slot];
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    if (malformed_.warned() > 0)
      malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }

 private:
  Demand DemandOf(const v1beta1::Pod& pod) const {
    Demand demand;
    demand.gpus = args_.gpus.DemandOf(pod);
    // Most pods request at most one GPU; skip the rest of the pod.
    if (demand.gpus > 1) demand.parallelism = ParallelismOfPod(pod, &malformed_);
    return demand;
  }
  FilterState& StateOf(const sdk::Attempt& attempt) const;
  bool PassesUnknown() const { return args_.unknown != sdk::OnUnknown::kReject; }
  bool TopologyWillDo(const NodeTopology& node) const {
    if (node.topology == Topology::kUnknown) return PassesUnknown();
    return std::find(args_.required_topologies.begin(), args_.required_topologies.end(),
                     node.topology) != args_.required_topologies.end();
  }
  // A node whose ResourceSlices changed; empty: none.
  void ReadAgain(const std::string& node) {
    if (node.empty()) return;
    if (const auto view = cluster_.FindNode(node)) OnNodeChanged(view->slot());
    roomiest_.Clear();  // The node itself has not changed.
  }
  // `counted`: before the change. With the first claim, the devices of all nodes count.
  void ClaimsChanged(bool counted) {
    roomiest_.Clear();
    if (counted == args_.gpus.claims().active()) return;
    for (const sdk::Slot slot : cluster_.node_order()) OnNodeChanged(slot);
  }
  struct KnownGpus {
    sdk::GpuSet ids = 0;
    int64_t asked_for = 0;  // Requested as GPU resources; 0 if the pod requests shares of GPUs.
  };
  // For the pods on the node, including the changes of a hypothesis: by their annotations, else by
  // the node's.
  KnownGpus KnownOn(const sdk::NodeView& node) const;
  bool HasRoom(FilterState& state, const sdk::GpuColumns& gpus, const sdk::NodeView& node) const;
  // Computed once per state of a node.
  int64_t RoomiestIsland(FilterState& state, const sdk::NodeView& node) const;
  static void ListIslands(const NodeTopology& topology, const KnownGpus& known,
                          std::vector<IslandUse>* islands);
  int64_t AllocatableOf(const v1beta1::Node& node) const;
  // Whether the node could take the pod if it were empty.
  bool CouldTake(const Demand& demand, const NodeTopology& topology, int64_t allocatable) const {
    return (!demand.parallelism.tensor || TopologyWillDo(topology)) &&
           (!demand.parallelism.data || topology.LargestIsland(allocatable) >= demand.gpus);
  }

  const Args args_;
  const sdk::ClusterView cluster_;
  sdk::NodeFactsReader facts_;
  sdk::UnknownNodes unknown_nodes_;
  const sdk::Verdict wrong_topology_ =
      sdk::Verdict::Unresolvable("Tensor parallelism demands NVLink/NVSwitch fabric");
  std::vector<NodeTopology> topologies_;  // By slot.
  // The data that Filter reads per node, kept compact because it may visit all nodes for a pod.
  struct NodeColumn {
    int64_t largest_island = 0;  // On the empty node.
    bool topology_will_do = false;
  };
  std::vector<NodeColumn> columns_;  // By slot.
  // Result of Roomiest by node.
  mutable sdk::NodeMemo<int64_t> roomiest_;
  // Pods on nodes with known GPU ids, and their number per node. The address of a record is stable
  // while the pod is on a node.
  absl::flat_hash_map<const sdk::PodRecord*, KnownGpus> known_gpus_;
  std::vector<int64_t> known_pods_;     // By slot.
  std::vector<sdk::PodGpus> pod_gpus_;  // By slot: the annotation of the node.
  // Mutable: const calls read pods. All calls come on one thread.
  mutable sdk::MalformedValues malformed_{kName};
};

FilterState& TopologyAwareGpuGate::StateOf(const sdk::Attempt& attempt) const {
  if (auto* state = attempt.filter_state<FilterState>()) return *state;
  auto& state = attempt.NewFilterState<FilterState>();
  state.demand = DemandOf(attempt.pod().proto());
  if (!state.demand.concerned()) return state;
  state.gpu_columns = args_.gpus.ColumnIdsOf(attempt.cluster());
  const std::string lacks =
      absl::StrCat("Node lacks ", state.demand.gpus, " GPUs in unified NVLink island");
  state.no_room = sdk::Verdict::Unschedulable(lacks);
  state.no_island = sdk::Verdict::Unresolvable(lacks);
  return state;
}

void TopologyAwareGpuGate::Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
                                  sdk::FilterSink& sink) const {
  FilterState& state = StateOf(attempt);
  const Demand& demand = state.demand;
  if (!demand.concerned()) return;
  // The clock does not affect verdicts; it only triggers the warning.
  const bool timed = args_.slow_call != absl::InfiniteDuration();
  const Clock::time_point begin = timed ? Clock::now() : Clock::time_point();
  const sdk::GpuColumns gpus(attempt.cluster().nodes(), state.gpu_columns,
                             args_.gpus.active_claims(), &attempt.pod().proto());
  uint64_t wrong_topology = 0, no_island = 0, no_room = 0;
  block.ForEach([&](int i, sdk::Slot slot) {
    const uint64_t bit = uint64_t{1} << i;
    const NodeColumn& node = columns_[slot];
    if (demand.parallelism.tensor && !node.topology_will_do) {
      wrong_topology |= bit;
    } else if (demand.parallelism.data && node.largest_island < demand.gpus) {
      no_island |= bit;
    } else if (demand.parallelism.data && !HasRoom(state, gpus, attempt.cluster().node(slot))) {
      no_room |= bit;
    }
  });
  sink.RejectAll(wrong_topology, wrong_topology_);
  sink.RejectAll(no_island, state.no_island);
  sink.RejectAll(no_room, state.no_room);
  if (!timed) return;
  state.taken += absl::FromChrono(Clock::now() - begin);
  if (state.taken > args_.slow_call && !state.warned) {
    state.warned = true;
    LOG(WARNING) << kName << ": Filter for " << sdk::LogName(attempt) << " took longer than "
                 << args_.slow_call;
  }
}

TopologyAwareGpuGate::KnownGpus TopologyAwareGpuGate::KnownOn(const sdk::NodeView& node) const {
  KnownGpus result;
  const sdk::Slot slot = node.slot();
  const sdk::PodGpus& of_node = pod_gpus_[slot];
  if (of_node.empty() && (slot >= known_pods_.size() || known_pods_[slot] == 0)) return result;
  for (const sdk::PodRecord* pod : node.pods()) {
    KnownGpus known;
    if (const auto it = known_gpus_.find(pod); it != known_gpus_.end()) {
      known = it->second;
    } else if (!of_node.empty()) {
      const int64_t demand = args_.gpus.DemandOf(pod->pod);
      const auto gpus = sdk::FindGpusOfPod(of_node, pod->pod, demand);
      if (gpus) known = {*gpus, std::min<int64_t>(demand, std::popcount(*gpus))};
    }
    result.ids |= known.ids;
    result.asked_for += known.asked_for;
  }
  return result;
}

bool TopologyAwareGpuGate::HasRoom(FilterState& state, const sdk::GpuColumns& gpus,
                                   const sdk::NodeView& node) const {
  const sdk::Slot slot = node.slot();
  const int64_t wanted = state.demand.gpus;
  const int64_t free = gpus.Free(slot);
  // The pod may fit if an island has enough GPUs not known to be in use. MustFit requires more.
  if (wanted > free || wanted > RoomiestIsland(state, node)) return false;
  if (!args_.must_fit || topologies_[slot].one_island) return true;
  const KnownGpus known = KnownOn(node);
  ListIslands(topologies_[slot], known, &state.islands);
  sdk::GpuSet known_ids = 0;  // GPUs whose island is known.
  int64_t in_islands = 0;
  for (const sdk::GpuIsland& island : topologies_[slot].islands) {
    known_ids |= island.ids;
    in_islands += island.gpus;
  }
  // GPUs at unknown places that are in use or missing (a device plugin removes broken ones).
  const int64_t at_known_places = known_ids == 0 ? 0 : known.asked_for;
  const int64_t hidden = std::max<int64_t>(0, gpus.Requested(slot) - at_known_places) +
                         std::max<int64_t>(0, in_islands - gpus.Allocatable(slot));
  return MustFit(state.islands, wanted, free, hidden);
}

int64_t TopologyAwareGpuGate::RoomiestIsland(FilterState& state, const sdk::NodeView& node) const {
  return roomiest_.Of(node.table(), node.slot(), [&] {
    const NodeTopology& topology = topologies_[node.slot()];
    if (topology.one_island) return columns_[node.slot()].largest_island;
    ListIslands(topology, KnownOn(node), &state.islands);
    return Roomiest(state.islands);
  });
}

void TopologyAwareGpuGate::ListIslands(const NodeTopology& topology, const KnownGpus& known,
                                       std::vector<IslandUse>* islands) {
  islands->clear();
  for (const sdk::GpuIsland& island : topology.islands)
    islands->push_back({island.gpus, std::popcount(island.ids & known.ids)});
}

int64_t TopologyAwareGpuGate::AllocatableOf(const v1beta1::Node& node) const {
  int64_t sum = 0;
  for (const std::string& name : args_.gpus.names()) {
    const auto it = node.allocatable().scalar().find(name);
    if (it != node.allocatable().scalar().end()) sum += it->second;
  }
  if (sum == 0 && args_.gpus.claims().active()) return args_.gpus.claims().DevicesOn(node.name());
  return sum;
}

// A node helps if it could take the pod when empty, and if it could not before or now has other
// islands, more GPUs or pods on other GPUs. A pod helps if it releases GPUs or if its GPU ids
// change.
sdk::Hint TopologyAwareGpuGate::QueueingHint(const sdk::PodView& pod,
                                             const sdk::ObjectChange& change) const {
  const auto hint = [](bool helps) { return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip; };
  if (change.new_node != nullptr) {
    const Demand demand = DemandOf(pod.proto());
    const int64_t gpus_now = AllocatableOf(*change.new_node);
    // Malformed labels were reported when the node was added.
    const NodeTopology now = TopologyOf(facts_.Of(*change.new_node, nullptr), PassesUnknown());
    if (!CouldTake(demand, now, gpus_now)) return sdk::Hint::kSkip;
    if (change.old_node == nullptr) return sdk::Hint::kQueue;
    const NodeTopology before = TopologyOf(facts_.Of(*change.old_node, nullptr), PassesUnknown());
    const int64_t gpus_before = AllocatableOf(*change.old_node);
    return hint(!CouldTake(demand, before, gpus_before) || now != before ||
                gpus_now > gpus_before ||
                sdk::PodGpusOfNode(*change.new_node, nullptr) !=
                    sdk::PodGpusOfNode(*change.old_node, nullptr));
  }
  // A ResourceSlice: something is known of a node.
  if (change.new_object != nullptr) return sdk::Hint::kQueue;
  if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
  const v1beta1::Pod* before = change.old_pod;
  if (before == nullptr) return sdk::Hint::kSkip;
  if (before->node_name().empty() && before->nominated_node_name().empty()) return sdk::Hint::kSkip;
  const int64_t had = args_.gpus.DemandOf(*before);
  if (change.new_pod == nullptr) return hint(had > 0 || sdk::GpusOfPod(*before, had, nullptr));
  const int64_t has = args_.gpus.DemandOf(*change.new_pod);
  return hint(has < had || sdk::GpusOfPod(*before, had, nullptr) !=
                               sdk::GpusOfPod(*change.new_pod, has, nullptr));
}

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  const std::vector<std::string> topologies =
      root.Strings("requiredTopologies", {"nvlink", "nvswitch"});
  if (topologies.empty()) {
    root.Problem("requiredTopologies", sdk::RequiredValue("at least one topology must be named"));
  }
  for (size_t i = 0; i < topologies.size(); ++i) {
    const Topology topology = ParseTopology(topologies[i]);
    const std::string field = absl::StrCat("requiredTopologies[", i, "]");
    const auto& known = args.required_topologies;
    if (topology == Topology::kUnknown) {
      root.Problem(field, sdk::NotSupported(topologies[i], {"nvlink", "nvswitch", "pcie"}));
    } else if (std::find(known.begin(), known.end(), topology) != known.end()) {
      root.Problem(field, sdk::DuplicateValue(topologies[i]));
    } else {
      args.required_topologies.push_back(topology);
    }
  }
  const std::string unknown_devices = root.String("unknownDevices", kMayFit);
  if (unknown_devices != kMayFit && unknown_devices != kMustFit)
    root.Problem("unknownDevices", sdk::NotSupported(unknown_devices, {kMayFit, kMustFit}));
  args.must_fit = unknown_devices == kMustFit;
  args.unknown = sdk::ReadOnUnknown(root, sdk::OnUnknown::kPass, /*may_score=*/true);
  args.facts = sdk::ReadNodeFactsOptions(root);
  args.slow_call = root.Duration("slowCall", args.slow_call);
  if (args.slow_call < absl::ZeroDuration()) {
    root.Problem("slowCall",
                 sdk::InvalidValue(absl::FormatDuration(args.slow_call), "must not be negative"));
  }
  args.gpus = sdk::GpuResources::Read(root);
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_PRE_SCORE,
                        v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  // UPDATE_OTHER of pods: annotations.
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_LABEL,
                          Event::ACTION_UPDATE_POD_SCALE_DOWN, Event::ACTION_UPDATE_OTHER}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE,
                           Event::ACTION_UPDATE_NODE_LABEL, Event::ACTION_UPDATE_NODE_ANNOTATION}),
      sdk::WakeOn(sdk::kResourceSlices, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  d.needed_fields = ParallelismFields();
  for (std::string& field : sdk::GpuIdFields()) d.needed_fields.push_back(std::move(field));
  for (std::string& field : sdk::NodeFactsFields()) d.needed_fields.push_back(std::move(field));
  sdk::DeclareGpuClaims(&d.declared_resources);
  d.metrics = {
      {kUnknownNodesMetric,
       sdk::MetricType::kGauge,
       {"profile"},
       "Nodes with several GPUs of which no component publishes how these are connected."}};
  d.signature = sdk::SignedParts(d.needed_fields, {"spec.containers", "spec.resourceClaims",
                                                   "metadata.ownerReferences", "metadata.labels"});
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<TopologyAwareGpuGate>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::topology_aware_gpu_gate
