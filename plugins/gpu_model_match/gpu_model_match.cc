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
#include "plugins/gpu_model_match/gpu_model.h"

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
// Out of 10; multiplied by 10 for Kubernetes' range.
constexpr int64_t kNear = 10, kFar = 1, kOutOf = 10;

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "matchPartitions": {"type": "boolean", "default": true,
      "description": "Whether shared and MIG GPUs (-SHARED, -MIG-… suffix) match the model without the suffix."},
    "unknown": {"enum": ["reject", "pass"], "default": "reject",
      "description": "What happens with nodes of which no component publishes the model, for pods that name one."},
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
};

class GpuModelMatch : public sdk::Plugin,
                      public sdk::FilterPlugin,
                      public sdk::PreScorePlugin,
                      public sdk::ScorePlugin,
                      public sdk::QueueingHintPlugin,
                      public sdk::ClusterObserver {
 public:
  GpuModelMatch(sdk::GpuResources gpus, bool match_partitions, sdk::OnUnknown unknown,
                sdk::NodeFactsOptions facts, const sdk::PluginContext& context)
      : gpus_(std::move(gpus)),
        match_partitions_(match_partitions),
        pass_unknown_(unknown == sdk::OnUnknown::kPass),
        cluster_(context.cluster),
        facts_(std::move(facts)),
        unknown_nodes_(kName, "the model of its GPUs",
                       pass_unknown_ ? "pods that name a model may use such nodes"
                                     : "pods that name a model do not use such nodes",
                       context.metrics->NewGauge(kUnknownNodesMetric, {context.profile})) {}

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    const auto* wanted = attempt.filter_state<Wanted>();
    if (wanted == nullptr) {
      auto& made = attempt.NewFilterState<Wanted>();
      const std::string model = WantedModel(attempt.pod().proto());
      made.any_model = !model.empty();
      if (made.any_model) {
        made.model = models_.Find(model);
        sets_.Follow(attempt.cluster().nodes());
      }
      wanted = &made;
    }
    if (!wanted->any_model) return;
    const auto lacks_label = [&](sdk::Slot slot) {
      return nodes_[slot].name == sdk::StringTable::kNone;
    };
    const auto matches = [&, model = wanted->model](sdk::Slot slot) -> bool {
      const NodeModel& node = nodes_[slot];
      return (node.name == model) | (match_partitions_ & static_cast<int>(node.base == model));
    };
    const uint64_t no_label = sets_.Bits({Asked::kLacksLabel, 0}, block, lacks_label);
    const uint64_t match = sets_.Bits({Asked::kMatches, wanted->model}, block, matches);
    if (!pass_unknown_) sink.RejectAll(no_label, no_label_);
    sink.RejectAll(~(match | no_label), mismatch_);
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
    for (size_t i = 0; i < nodes.size(); ++i) raw[i] = numa_[nodes[i]] == wanted ? kNear : kFar;
    if (VLOG_IS_ON(4)) Log(attempt, wanted, nodes, raw);
    return sdk::Verdict::Success();
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    for (int64_t& score : scores) score *= sdk::kMaxScore / kOutOf;
    return sdk::Verdict::Success();
  }

  // Helpful events: a node gets the model; the pod's label names another model.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (change.new_object != nullptr) return sdk::Hint::kQueue;  // A ResourceSlice.
    if (change.new_node == nullptr) {
      const bool own = change.new_pod != nullptr && change.new_pod->uid() == pod.uid();
      return own ? sdk::Hint::kQueue : sdk::Hint::kSkip;
    }
    const std::string wanted = WantedModel(pod.proto());
    const bool helps =
        wanted.empty() || (Has(*change.new_node, wanted) &&
                           (change.old_node == nullptr || !Has(*change.old_node, wanted)));
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    facts_.Clear();
    unknown_nodes_.Clear();
    nodes_.clear();
    sets_.Forget();
    numa_.clear();
    models_.Clear();
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
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    nodes_[slot] = NodeModel();
    unknown_nodes_.Forget(slot);
    sets_.Forget();
    numa_[slot] = kUnknownNuma;
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    ReadAgain(facts_.SetObject(object));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    ReadAgain(facts_.RemoveObject(object));
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    if (malformed_.warned() > 0) malformed_.Forget(NameOf(pod.pod));
  }

 private:
  static std::string NameOf(const v1beta1::Pod& pod) {
    return absl::StrCat("pod ", pod.namespace_(), "/", pod.name());
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
              << ": " << scores[i] << " of " << kOutOf;
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
  const sdk::ClusterView cluster_;
  sdk::NodeFactsReader facts_;
  sdk::UnknownNodes unknown_nodes_;
  const sdk::Verdict no_label_ = sdk::Verdict::Unresolvable("Node does not have a GPU model label");
  const sdk::Verdict mismatch_ = sdk::Verdict::Unresolvable("GPU model mismatch");
  // Names and bases of present and past nodes' models; pods' models are only looked up.
  sdk::StringTable models_;
  // Nodes that match a model, and nodes without a label: Filter skips most others.
  enum class Asked { kLacksLabel, kMatches };
  mutable sdk::NodeSets<std::pair<Asked, uint32_t>> sets_;
  // By slot.
  std::vector<NodeModel> nodes_;
  std::vector<int16_t> numa_;
  // Const calls read pods; all calls are on one thread.
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
      sdk::WakeOn("Pod", {Event::ACTION_UPDATE_POD_LABEL}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_LABEL}),
      sdk::WakeOn(sdk::kResourceSlices, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  d.needed_fields = {sdk::AnnotationField(kNumaAnnotation)};
  d.declared_resources = {sdk::ResourceSliceResource()};
  d.metrics = {{kUnknownNodesMetric,
                sdk::MetricType::kGauge,
                {"profile"},
                "Nodes with GPUs of which no component publishes the model."}};
  d.signature = sdk::SignedParts(
      d.needed_fields, {"spec.containers", absl::StrCat("metadata.labels['", kModelLabel, "']")});
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject root = context.args->root();
    sdk::GpuResources gpus = sdk::GpuResources::Read(root);
    const bool match_partitions = root.Bool("matchPartitions", true);
    const sdk::OnUnknown unknown =
        sdk::ReadOnUnknown(root, sdk::OnUnknown::kReject, /*may_score=*/false);
    return std::make_unique<GpuModelMatch>(std::move(gpus), match_partitions, unknown,
                                           sdk::ReadNodeFactsOptions(root), context);
  };
  return d;
}

}  // namespace outboard::gpu_model_match
