#include "plugins/gpu_model_match/gpu_model_match.h"

#include <glog/logging.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/node_facts/unknown_nodes.h"
#include "plugin_host/sdk/node_sets.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/string_table.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/gpu_model_match/gpu_model.h"
#include "plugins/gpu_model_match/node_topologies.h"
#include "plugins/gpu_model_match/numa_fit.h"
#include "plugins/gpu_model_match/numa_objects.h"
#include "plugins/gpu_model_match/numa_requests.h"

namespace outboard::gpu_model_match {
namespace {

constexpr char kName[] = "GPUModelMatch";
constexpr char kModelLabel[] = "accelerator.sched.io/gpu-model";     // Of pods.
constexpr char kNumaAnnotation[] = "accelerator.sched.io/gpu-numa";  // Of pods.
constexpr char kNumaLabel[] = "nvidia.com/gpu.numa";                 // Of nodes.
constexpr char kUnknownNodesMetric[] = "outboard_gpu_model_match_unknown_nodes";
constexpr char kNumaWanted[] = "the number of a NUMA node";

// The kubelet supports at most 8 NUMA nodes by default; this is far more than any machine has.
constexpr int64_t kMaxNuma = 1023;
constexpr int16_t kUnknownNuma = -1;
// Scores by the label, and of nodes without label and object.
constexpr int64_t kNear = 100, kFar = 10, kNeutral = 50;

constexpr char kPredicted[] = "Predicted";
constexpr char kEveryZone[] = "EveryZone";

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "matchPartitions": {"type": "boolean", "default": true,
      "description": "Whether shared and MIG GPUs (-SHARED, -MIG-… suffix) match the model without the suffix."},
    "unknown": {"enum": ["reject", "pass"], "default": "reject",
      "description": "What happens with nodes of which no component publishes the model, for pods that name one."},
    "numa": {"type": "object", "additionalProperties": false,
      "properties": {
        "topologies": {"type": "boolean", "default": true,
          "description": "Whether to use NodeResourceTopology objects."},
        "filter": {"type": "boolean", "default": true,
          "description": "Whether to reject nodes whose kubelet would reject the pod."},
        "assumedPods": {"enum": ["Predicted", "EveryZone"], "default": "Predicted",
          "description": "Where pods that an object does not have yet take their resources from."},
        "updatePeriod": {"type": "string", "default": "1m",
          "description": "How long after its start a pod is in the node's object at the latest."}}},
    )json",
                      sdk::kGpuResourceNamesSchema, ",\n    ", sdk::kNodeFactsSchema, "}}");
}

// A node's GPU model, in `models_`.
struct NodeModel {
  uint32_t name = sdk::StringTable::kNone;
  uint32_t base = sdk::StringTable::kNone;
  friend bool operator==(const NodeModel&, const NodeModel&) = default;
};

// What a pod asks for.
struct Wanted : sdk::AttemptState {
  bool any_model = false;  // True if the pod names a model.
  uint32_t model = sdk::StringTable::kNone;
  NumaRequests numa;  // Empty also if Filter does not need it.
};

// The argument `numa`.
struct NumaArgs {
  bool topologies = true;
  bool filter = true;
  NodeTopologies::Options options;
};

NumaArgs ReadNumaArgs(const sdk::ArgsObject& args) {
  NumaArgs numa;
  numa.topologies = args.Bool("topologies", true);
  numa.filter = args.Bool("filter", true);
  const std::string assumed = args.String("assumedPods", kPredicted);
  numa.options.every_zone = assumed == kEveryZone;
  if (assumed != kEveryZone && assumed != kPredicted)
    args.Problem("assumedPods", sdk::NotSupported(assumed, {kEveryZone, kPredicted}));
  numa.options.update_period = args.Duration("updatePeriod", numa.options.update_period);
  if (numa.options.update_period <= absl::ZeroDuration()) {
    args.Problem("updatePeriod", sdk::InvalidValue(absl::FormatDuration(numa.options.update_period),
                                                   "must be greater than zero"));
  }
  return numa;
}

class GpuModelMatch : public sdk::Plugin,
                      public sdk::FilterPlugin,
                      public sdk::PreScorePlugin,
                      public sdk::ScorePlugin,
                      public sdk::QueueingHintPlugin,
                      public sdk::ClusterObserver {
 public:
  GpuModelMatch(sdk::GpuResources gpus, bool match_partitions, sdk::OnUnknown unknown,
                sdk::NodeFactsOptions facts, const NumaArgs& numa,
                const sdk::PluginContext& context)
      : gpus_(std::move(gpus)),
        match_partitions_(match_partitions),
        pass_unknown_(unknown == sdk::OnUnknown::kPass),
        uses_topologies_(numa.topologies),
        filters_topologies_(numa.topologies && numa.filter),
        cluster_(context.cluster),
        facts_(std::move(facts)),
        unknown_nodes_(kName, "the model of its GPUs",
                       pass_unknown_ ? "pods that name a model may use such nodes"
                                     : "pods that name a model do not use such nodes",
                       context.metrics->NewGauge(kUnknownNodesMetric, {context.profile})),
        topologies_(numa.options, context.cluster) {}

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* wanted = attempt.filter_state<Wanted>();
    if (wanted == nullptr) wanted = &Read(attempt);
    if (wanted->any_model) FilterModel(wanted->model, block, sink);
    if (!wanted->numa.empty()) FilterNuma(attempt, wanted->numa, block, sink);
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    return gpus_.DemandOf(attempt.pod().proto()) > 0 ? sdk::Verdict::Success()
                                                     : sdk::Verdict::Skip();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    if (PreScore(attempt, nodes).skip()) {  // The profile enables only score, not preScore.
      for (int64_t& score : raw) score = 0;
      return sdk::Verdict::Success();
    }
    const int64_t wanted = WantedNuma(pod);
    const NumaRequests requests = topologies_.empty() ? NumaRequests() : NumaRequestsOf(pod);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int16_t numa = numa_[nodes[i]];
      raw[i] = numa != kUnknownNuma ? (numa == wanted ? kNear : kFar)
                                    : ScoreByTopology(attempt, requests, nodes[i]);
    }
    if (VLOG_IS_ON(4)) Log(attempt, wanted, nodes, raw);
    return sdk::Verdict::Success();
  }

  // Helpful events: a node gets the model; the pod's label names another model; zones get free.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.resource == kNodeResourceTopologies) return TopologyHint(pod, change);
    if (change.new_object != nullptr) return sdk::Hint::kQueue;  // A ResourceSlice.
    if (change.new_node == nullptr) {
      if (change.new_pod == nullptr) return FreesZones(pod, *change.old_pod);
      return change.new_pod->uid() == pod.uid() ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    }
    const std::string wanted = WantedModel(pod.proto());
    const bool helps =
        wanted.empty() || (Has(*change.new_node, wanted) &&
                           (change.old_node == nullptr || !Has(*change.old_node, wanted)));
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    facts_.Clear();
    gpus_.claims().Clear();
    unknown_nodes_.Clear();
    nodes_.clear();
    sets_.Forget();
    numa_.clear();
    models_.Clear();
    topologies_.Clear();
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= nodes_.size()) {
      nodes_.resize(slot + 1);
      numa_.resize(slot + 1, kUnknownNuma);
    }
    const v1beta1::Node& node = cluster_.node(slot).proto();
    const std::string object = absl::StrCat("node ", node.name());
    NodeModel known;
    int16_t numa_of_node = kUnknownNuma;
    const NamedModel named = ModelOf(node, &malformed_);
    if (named.known) {
      known.name = models_.Intern(named.model.name);
      known.base = models_.Intern(named.model.base);
    }
    unknown_nodes_.Set(slot, node.name(),
                       !named.known && gpus_.AllocatableOn(cluster_.node(slot)) > 0);
    if (const std::string* text = sdk::FindValue(node.labels(), kNumaLabel)) {
      if (auto numa = sdk::ParseCount(*text, kMaxNuma)) {
        numa_of_node = static_cast<int16_t>(*numa);
      } else {
        malformed_.Warn(object, kNumaLabel, *text, kNumaWanted);
      }
    }
    if (std::exchange(nodes_[slot], known) != known) sets_.Forget();
    numa_[slot] = numa_of_node;
    topologies_.SetNode(slot);
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    nodes_[slot] = NodeModel();
    unknown_nodes_.Forget(slot);
    sets_.Forget();
    numa_[slot] = kUnknownNuma;
    topologies_.RemoveNode(slot);
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    if (malformed_.warned() > 0) malformed_.Forget(NameOf(pod.pod));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (IsTopology(object))
      topologies_.Set(object.generic_object(), /*changed=*/old != nullptr, &malformed_);
    gpus_.claims().Set(object);
    ReadAgain(facts_.SetObject(object));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (IsTopology(object)) topologies_.Remove(object.generic_object().name());
    gpus_.claims().Remove(object);
    ReadAgain(facts_.RemoveObject(object));
  }

 private:
  static std::string NameOf(const v1beta1::Pod& pod) {
    return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
  }
  bool IsTopology(const v1beta1::ClusterObject& object) const {
    return uses_topologies_ && object.has_generic_object() &&
           object.generic_object().resource() == kNodeResourceTopologies;
  }

  const Wanted& Read(const sdk::Attempt& attempt) const {
    auto& wanted = attempt.NewFilterState<Wanted>();
    const v1beta1::Pod& pod = attempt.pod().proto();
    const std::string model = WantedModel(pod);
    wanted.any_model = !model.empty();
    if (wanted.any_model) {
      wanted.model = models_.Find(model);
      sets_.Follow(attempt.cluster().nodes());
    }
    if (filters_topologies_ && !topologies_.empty()) wanted.numa = NumaRequestsOf(pod);
    return wanted;
  }

  void FilterModel(uint32_t model, const sdk::NodeBlock& block, sdk::FilterSink& sink) const {
    const auto lacks_label = [&](sdk::Slot slot) {
      return nodes_[slot].name == sdk::StringTable::kNone;
    };
    const auto matches = [&](sdk::Slot slot) -> bool {
      const NodeModel& node = nodes_[slot];
      return (node.name == model) | (match_partitions_ & static_cast<int>(node.base == model));
    };
    const uint64_t no_label = sets_.Bits({Asked::kLacksLabel, 0}, block, lacks_label);
    const uint64_t match = sets_.Bits({Asked::kMatches, model}, block, matches);
    if (!pass_unknown_) sink.RejectAll(no_label, no_label_);
    sink.RejectAll(~(match | no_label), mismatch_);
  }

  void FilterNuma(const sdk::Attempt& attempt, const NumaRequests& requests,
                  const sdk::NodeBlock& block, sdk::FilterSink& sink) const {
    const uint64_t rejected = sink.rejected();
    block.ForEach([&](int i, sdk::Slot slot) {
      if ((rejected >> i & 1) != 0) return;
      const auto found = topologies_.Find(attempt.cluster().nodes(), slot, attempt.now());
      if (found.topology == nullptr) return;
      const NumaMisfit misfit = FindMisfit(requests, *found.topology, *found.available);
      if (misfit != NumaMisfit::kNone) sink.Reject(i, VerdictOf(misfit));
    });
  }
  const sdk::Verdict& VerdictOf(NumaMisfit misfit) const {
    if (misfit == NumaMisfit::kPod) return pod_misfit_;
    if (misfit == NumaMisfit::kInitContainer) return init_misfit_;
    return misfit == NumaMisfit::kSidecar ? sidecar_misfit_ : container_misfit_;
  }

  // Of a node without a label.
  int64_t ScoreByTopology(const sdk::Attempt& attempt, const NumaRequests& requests,
                          sdk::Slot slot) const {
    if (topologies_.empty()) return kFar;
    const auto found = topologies_.Find(attempt.cluster().nodes(), slot, attempt.now());
    if (found.topology == nullptr || found.topology->policy == NumaPolicy::kNone ||
        found.topology->zones.size() > kMaxZonesInSets)
      return kNeutral;
    return ScoreOf(FindSpan(requests, *found.topology, *found.available),
                   found.topology->max_numa_nodes);
  }

  // Whether the node of an object that was added, changed or removed may fit now.
  sdk::Hint TopologyHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const {
    const v1beta1::ClusterObject* object =
        change.new_object != nullptr ? change.new_object : change.old_object;
    const auto node = cluster_.FindNode(object->generic_object().name());
    if (!filters_topologies_ || !node.has_value()) return sdk::Hint::kSkip;
    const std::string wanted = WantedModel(pod.proto());
    if (!wanted.empty() && !Has(node->proto(), wanted)) return sdk::Hint::kSkip;
    if (change.new_object == nullptr) return sdk::Hint::kQueue;
    const NumaObject now = ReadNumaObject(change.new_object->generic_object());
    const NumaRequests requests = NumaRequestsOf(pod.proto());
    return FindMisfit(requests, now.topology, now.available) == NumaMisfit::kNone
               ? sdk::Hint::kQueue
               : sdk::Hint::kSkip;
  }
  // A pod that leaves a node gives back what its node's object does not have yet, at once; for the
  // rest the object changes.
  sdk::Hint FreesZones(const sdk::PodView& pod, const v1beta1::Pod& removed) const {
    const bool frees = filters_topologies_ && !NumaRequestsOf(removed).empty() &&
                       topologies_.FindObject(removed.node_name()).topology != nullptr &&
                       !NumaRequestsOf(pod.proto()).empty();
    return frees ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  // The model's name as in GpuModel; empty: any model.
  std::string WantedModel(const v1beta1::Pod& pod) const {
    const std::string* text = sdk::FindValue(pod.labels(), kModelLabel);
    if (text == nullptr) return "";
    std::string model = ParseGpuModel(*text).name;
    if (model.empty()) malformed_.Warn(NameOf(pod), kModelLabel, *text, "the name of a GPU model");
    return model;
  }
  // The NUMA node that the pod requests; 0 by default.
  int64_t WantedNuma(const v1beta1::Pod& pod) const {
    const std::string* text = sdk::FindValue(pod.annotations(), kNumaAnnotation);
    if (text == nullptr) return 0;
    if (auto numa = sdk::ParseCount(*text, kMaxNuma)) return *numa;
    malformed_.Warn(NameOf(pod), kNumaAnnotation, *text, kNumaWanted);
    return 0;
  }
  void Log(const sdk::Attempt& attempt, int64_t wanted, absl::Span<const sdk::Slot> nodes,
           absl::Span<const int64_t> scores) const {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int64_t numa = numa_[nodes[i]];
      VLOG(4) << kName << ": node " << attempt.cluster().node(nodes[i]).name() << " pod "
              << attempt.pod().uid() << ": NUMA node "
              << (numa == kUnknownNuma ? "unknown" : absl::StrCat(numa)) << ", wanted " << wanted
              << ": " << scores[i] << " of " << sdk::kMaxScore;
    }
  }
  struct NamedModel {
    bool known = false;
    GpuModel model;
  };
  // `malformed` may be null.
  NamedModel ModelOf(const v1beta1::Node& node, sdk::MalformedValues* malformed) const {
    std::vector<sdk::MalformedLabel> labels;
    const sdk::NodeFacts facts = facts_.Of(node, malformed == nullptr ? nullptr : &labels);
    for (const sdk::MalformedLabel& label : labels)
      malformed->Warn(absl::StrCat("node ", node.name()), label.key, label.value, label.wanted);
    NamedModel named;
    named.known = facts.model.known();
    if (named.known) named.model = ParseGpuModel(*facts.model.value);
    return named;
  }
  bool Has(const v1beta1::Node& node, const std::string& wanted) const {
    const NamedModel named = ModelOf(node, nullptr);
    if (!named.known) return pass_unknown_;
    return wanted == named.model.name || (match_partitions_ && wanted == named.model.base);
  }
  // A node whose ResourceSlices changed; empty: none.
  void ReadAgain(const std::string& node) {
    if (node.empty()) return;
    if (const auto view = cluster_.FindNode(node)) OnNodeChanged(view->slot());
  }

  const sdk::GpuResources gpus_;
  const bool match_partitions_;
  const bool pass_unknown_;
  const bool uses_topologies_;
  const bool filters_topologies_;
  const sdk::ClusterView cluster_;
  sdk::NodeFactsReader facts_;
  sdk::UnknownNodes unknown_nodes_;
  const sdk::Verdict no_label_ = sdk::Verdict::Unresolvable("Node does not have a GPU model label");
  const sdk::Verdict mismatch_ = sdk::Verdict::Unresolvable("GPU model mismatch");
  // Texts of scheduler-plugins' NodeResourceTopologyMatch.
  const sdk::Verdict pod_misfit_ = sdk::Verdict::Unschedulable("cannot align pod");
  const sdk::Verdict init_misfit_ = sdk::Verdict::Unschedulable("cannot align init container");
  const sdk::Verdict sidecar_misfit_ =
      sdk::Verdict::Unschedulable("cannot align sidecar container");
  const sdk::Verdict container_misfit_ = sdk::Verdict::Unschedulable("cannot align container");
  // Names and bases of present and past nodes' models; pods' models are only looked up.
  sdk::StringTable models_;
  // Nodes that match a model, and nodes without a label: Filter skips most others.
  enum class Asked { kLacksLabel, kMatches };
  mutable sdk::NodeSets<std::pair<Asked, uint32_t>> sets_;
  // By slot.
  std::vector<NodeModel> nodes_;
  std::vector<int16_t> numa_;
  // Const calls compute what changed nodes have free, and read pods; all calls are on one thread.
  mutable NodeTopologies topologies_;
  mutable sdk::MalformedValues malformed_{kName};
};

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_PRE_SCORE,
                        v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_LABEL}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
      sdk::WakeOn(sdk::kResourceSlices, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER}),
      sdk::WakeOn(kNodeResourceTopologies,
                  {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER, Event::ACTION_DELETE})};
  d.needed_fields = {sdk::AnnotationField(kNumaAnnotation)};
  d.declared_resources = {sdk::UsesResource(kNodeResourceTopologies, {})};
  d.declared_resources.back().set_optional(true);  // Few clusters have the updater.
  sdk::DeclareGpuClaims(&d.declared_resources);
  d.metrics = {{kUnknownNodesMetric,
                sdk::MetricType::kGauge,
                {"profile"},
                "Nodes with GPUs of which no component publishes the model."}};
  d.signature =
      sdk::SignedParts(d.needed_fields, {"spec.containers", "spec.resourceClaims",
                                         absl::StrCat("metadata.labels['", kModelLabel, "']")});
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject root = context.args->root();
    sdk::GpuResources gpus = sdk::GpuResources::Read(root);
    const bool match_partitions = root.Bool("matchPartitions", true);
    const sdk::OnUnknown unknown =
        sdk::ReadOnUnknown(root, sdk::OnUnknown::kReject, /*may_score=*/false);
    const NumaArgs numa = ReadNumaArgs(root.Object("numa"));
    return std::make_unique<GpuModelMatch>(std::move(gpus), match_partitions, unknown,
                                           sdk::ReadNodeFactsOptions(root), numa, context);
  };
  return d;
}

}  // namespace outboard::gpu_model_match
