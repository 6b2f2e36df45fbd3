#include "plugins/workload_strategy_scorer/workload_strategy_scorer.h"

#include <glog/logging.h>

#include <algorithm>
#include <limits>
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
#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/validation.h"
#include "plugin_host/sdk/workload_type.h"
#include "plugins/workload_strategy_scorer/gpu_memory.h"

namespace outboard::workload_strategy_scorer {
namespace {

using sdk::Slot;
using sdk::WorkloadType;

constexpr char kName[] = "WorkloadStrategyScorer";
constexpr int64_t kNeutral = 50;
constexpr int64_t kTrainingBesideInference = 10, kTrainingContiguous = 90;
constexpr int64_t kInferenceGood = 95, kInferenceTooFull = 30, kInferenceElse = 60;
// More than the rounding error of sums of decimal numbers.
constexpr double kRounding = 1e-9;

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "saturation": {"type": "object", "additionalProperties": false, "properties": {
      "low": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7,
        "description": "Share of a node's GPU memory used by inference, including the new pod, from which the node is good."},
      "high": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.8,
        "description": "The share above which the node is too full."}}},
    )json",
                      sdk::WorkloadTypesSchema(), ",\n    ", kGpuMemoryResourcesSchema, ",\n    ",
                      sdk::kGpuResourceNamesSchema, ",\n    ", sdk::kNodeFactsSchema, "}}");
}

struct Args {
  double low = 0.7;
  double high = 0.8;
  sdk::WorkloadTypes types;
  GpuMemory memory;
  sdk::NodeFactsOptions facts;
};

// The longest possible run of free GPUs on a node with `gpus` GPUs, if `known` are in use.
int64_t LongestRun(int64_t gpus, sdk::GpuSet known) {
  constexpr int64_t kIds = sdk::kMaxGpuId + 1;
  int64_t longest = 0, run = 0;
  for (int64_t id = 0; id < std::min(gpus, kIds); ++id) {
    run = (known >> id & 1) != 0 ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return std::max(longest, run + std::max<int64_t>(0, gpus - kIds));
}

class WorkloadStrategyScorer : public sdk::Plugin,
                               public sdk::ScorePlugin,
                               public sdk::ClusterObserver {
 public:
  WorkloadStrategyScorer(Args args, const sdk::ClusterView& cluster)
      : args_(std::move(args)), cluster_(cluster), facts_(args_.facts) {}

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    const v1beta1::Pod& pod = attempt.pod().proto();
    const sdk::GpuColumns columns = gpus().ColumnsOf(attempt.cluster());
    switch (args_.types.TypeOf(pod)) {
      case WorkloadType::kOther:
        std::fill(raw.begin(), raw.end(), kNeutral);
        break;
      case WorkloadType::kTraining: {
        const int64_t demand = gpus().DemandOf(pod);
        const bool logs = VLOG_IS_ON(4);
        room_.resize(nodes.size());
        rooms_.Of(attempt.cluster().nodes(), nodes, absl::MakeSpan(room_),
                  [&](Slot slot) { return RoomOf(columns, attempt.cluster().node(slot)); });
        for (size_t i = 0; i < nodes.size(); ++i) {
          raw[i] = ScoreTraining(demand, room_[i]);
          if (logs) LogTraining(pod, demand, attempt.cluster().node(nodes[i]), room_[i], raw[i]);
        }
        break;
      }
      case WorkloadType::kInference: {
        const MemoryDemand demand = args_.memory.DemandOf(pod, &malformed_);
        const bool logs = VLOG_IS_ON(4);
        use_.resize(nodes.size());
        uses_.Of(attempt.cluster().nodes(), nodes, absl::MakeSpan(use_),
                 [&](Slot slot) { return UseOf(columns, slot); });
        for (size_t i = 0; i < nodes.size(); ++i) {
          const Saturation node = SaturationOf(demand, use_[i]);
          raw[i] = ScoreInference(node);
          if (logs) LogInference(attempt, nodes[i], node, raw[i]);
        }
        break;
      }
    }
    return sdk::Verdict::Success();
  }

  void OnReset() override {
    facts_.Clear();
    gpus().claims().Clear();
    uses_.Clear();
    rooms_.Clear();
    nodes_.clear();
    pods_.clear();
    malformed_.Clear();
  }
  void OnNodeChanged(Slot slot) override {
    const v1beta1::Node& node = cluster_.node(slot).proto();
    std::vector<sdk::MalformedLabel> malformed;
    At(slot).memory = NodeMemoryOf(facts_.Of(node, &malformed));
    for (const sdk::MalformedLabel& label : malformed)
      malformed_.Warn(absl::StrCat("node ", node.name()), label.key, label.value, label.wanted);
    At(slot).pod_gpus = sdk::PodGpusOfNode(node, &malformed_);
  }
  void OnNodeRemoved(Slot slot, const std::string& name) override {
    At(slot).memory = NodeMemory();
    At(slot).pod_gpus.clear();
    malformed_.Forget(absl::StrCat("node ", name));
  }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (gpus().claims().Set(object)) ForgetUse();
    ReadAgain(facts_.SetObject(object));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (gpus().claims().Remove(object)) ForgetUse();
    ReadAgain(facts_.RemoveObject(object));
  }
  void OnPodAddedToNode(const sdk::PodRecord& record, Slot slot) override {
    PodFacts facts;
    facts.infers = args_.types.TypeOf(record.pod) == WorkloadType::kInference;
    if (!record.pod.annotations().empty())
      facts.gpus = sdk::GpusOfPod(record.pod, gpus().DemandOf(record.pod), &malformed_);
    if (facts.infers) facts.memory = args_.memory.UseOf(record.pod, facts.gpus, &malformed_);
    if (!facts.infers && !facts.gpus) return;
    Count(At(slot), facts, 1);
    pods_[&record] = facts;
  }
  void OnPodRemovedFromNode(const sdk::PodRecord& record, Slot slot) override {
    const auto it = pods_.find(&record);
    if (it == pods_.end()) return;
    Count(At(slot), it->second, -1);
    pods_.erase(it);
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override {
    if (malformed_.warned() > 0)
      malformed_.Forget(absl::StrCat("pod ", pod.pod.namespace_(), "/", pod.pod.name()));
  }

 private:
  // Facts about a pod on a node.
  struct PodFacts {
    bool infers = false;
    MemoryDemand memory;              // Only for inference.
    std::optional<sdk::GpuSet> gpus;  // nullopt: the ids are unknown.
  };
  struct NodeFacts {
    NodeMemory memory;
    int64_t inference_pods = 0;
    double inference_mib = 0;
    int64_t inference_gpus = 0;  // Whole ones.
    int64_t known_pods = 0;      // Pods with known GPU ids.
    sdk::PodGpus pod_gpus;       // The annotation of the node.
  };

  // A node whose ResourceSlices changed; empty: none.
  void ReadAgain(const std::string& node) {
    if (node.empty()) return;
    if (const auto view = cluster_.FindNode(node)) OnNodeChanged(view->slot());
    uses_.Clear();  // The node itself has not changed.
  }

  // GPUs of claims changed; the nodes have not.
  void ForgetUse() {
    uses_.Clear();
    rooms_.Clear();
  }

  const sdk::GpuResources& gpus() const { return args_.memory.gpus(); }
  NodeFacts& At(Slot slot) {
    if (slot >= nodes_.size()) nodes_.resize(slot + 1);
    return nodes_[slot];
  }
  static void Count(NodeFacts& node, const PodFacts& pod, int64_t sign) {
    if (pod.gpus) node.known_pods += sign;
    if (!pod.infers) return;
    node.inference_pods += sign;
    node.inference_gpus += sign * pod.memory.whole_gpus;
    node.inference_mib += static_cast<double>(sign) * pod.memory.mib;
    // Remove the rounding error of a finished sum.
    if (node.inference_pods == 0) node.inference_mib = 0;
  }
  // Room of a node for training.
  struct TrainingRoom {
    int32_t inference_pods = 0;
    int32_t run = 0;  // Longest run of contiguous free GPUs.
  };
  TrainingRoom RoomOf(const sdk::GpuColumns& columns, const sdk::NodeView& node) const;
  static int64_t ScoreTraining(int64_t demand, const TrainingRoom& room) {
    if (room.inference_pods > 0) return kTrainingBesideInference;
    return demand > 0 && room.run >= demand ? kTrainingContiguous : kNeutral;
  }
  static void LogTraining(const v1beta1::Pod& pod, int64_t demand, const sdk::NodeView& node,
                          const TrainingRoom& room, int64_t score);
  // GPU memory of a node, in MiB.
  struct Saturation {
    double used = 0;    // By inference.
    double wanted = 0;  // By the new pod.
    double has = 0;     // Total; 0: unknown.
    double share() const { return (used + wanted) / has; }
  };
  // The part that does not depend on the pod.
  struct NodeUse {
    double used = 0;
    double per_gpu = 0;
    double has = 0;
  };
  NodeUse UseOf(const sdk::GpuColumns& columns, Slot slot) const {
    const NodeFacts& facts = nodes_[slot];
    const double per_gpu = facts.memory.mib_per_gpu.value_or(0);
    const int64_t count = facts.memory.gpus ? *facts.memory.gpus : columns.Allocatable(slot);
    return {facts.inference_mib + static_cast<double>(facts.inference_gpus) * per_gpu, per_gpu,
            per_gpu * static_cast<double>(count)};
  }
  static Saturation SaturationOf(const MemoryDemand& demand, const NodeUse& node) {
    return {node.used, demand.mib + static_cast<double>(demand.whole_gpus) * node.per_gpu,
            node.has};
  }
  // Sums instead of branches, because the branches would be unpredictable.
  int64_t ScoreInference(const Saturation& node) const {
    if (!(node.has > 0)) return kNeutral;
    const int64_t above_low = node.share() >= args_.low - kRounding ? 1 : 0;
    const int64_t above_high = node.share() > args_.high + kRounding ? 1 : 0;
    return kInferenceElse + above_low * (kInferenceGood - kInferenceElse) +
           above_high * (kInferenceTooFull - kInferenceGood);
  }
  static void LogInference(const sdk::Attempt& attempt, Slot slot, const Saturation& node,
                           int64_t score);

  const Args args_;
  const sdk::ClusterView cluster_;
  sdk::NodeFactsReader facts_;
  std::vector<NodeFacts> nodes_;  // By slot.
  // Derived from nodes_ and from the GPUs in use.
  mutable sdk::NodeMemo<NodeUse> uses_;
  mutable sdk::NodeMemo<TrainingRoom> rooms_;
  // Of the scored nodes, in their order.
  mutable std::vector<NodeUse> use_;
  mutable std::vector<TrainingRoom> room_;
  // Pods on nodes that count. The address of a record is stable while the pod is on a node.
  absl::flat_hash_map<const sdk::PodRecord*, PodFacts> pods_;
  // Mutable: const calls read pods. All calls come on one thread.
  mutable sdk::MalformedValues malformed_{kName};
};

WorkloadStrategyScorer::TrainingRoom WorkloadStrategyScorer::RoomOf(
    const sdk::GpuColumns& columns, const sdk::NodeView& node) const {
  const NodeFacts& facts = nodes_[node.slot()];
  sdk::GpuSet known = 0;
  if (facts.known_pods > 0 || !facts.pod_gpus.empty()) {
    for (const sdk::PodRecord* other : node.pods()) {
      const auto it = pods_.find(other);
      const auto by_node = [&] {
        return sdk::FindGpusOfPod(facts.pod_gpus, other->pod, gpus().DemandOf(other->pod));
      };
      known |= (it != pods_.end() && it->second.gpus ? it->second.gpus : by_node()).value_or(0);
    }
  }
  // At most the number of free GPUs, whichever GPUs are in use.
  int64_t run = columns.Free(node.slot());
  if (known != 0) run = std::min(run, LongestRun(columns.Allocatable(node.slot()), known));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  return {static_cast<int32_t>(std::min(facts.inference_pods, kMost)),
          static_cast<int32_t>(std::min(run, kMost))};
}

void WorkloadStrategyScorer::LogTraining(const v1beta1::Pod& pod, int64_t demand,
                                         const sdk::NodeView& node, const TrainingRoom& room,
                                         int64_t score) {
  VLOG(4) << kName << ": node " << node.name() << " training pod " << pod.uid() << ": "
          << room.inference_pods << " inference pods, " << room.run << " contiguous GPUs of "
          << demand << " wanted: " << score;
}

void WorkloadStrategyScorer::LogInference(const sdk::Attempt& attempt, Slot slot,
                                          const Saturation& node, int64_t score) {
  const std::string words = absl::StrCat("node ", attempt.cluster().node(slot).name(),
                                         " inference pod ", attempt.pod().uid(), ": ");
  if (!(node.has > 0)) {
    VLOG(4) << kName << ": " << words << "GPU memory unknown: " << score;
    return;
  }
  VLOG(4) << kName << ": " << words << "(" << node.used << " + " << node.wanted << ") / "
          << node.has << " MiB = " << node.share() << ": " << score;
}

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  const sdk::ArgsObject saturation = root.Object("saturation");
  const auto read = [&](const char* key, double default_value) {
    const double value = saturation.Double(key, default_value);
    if (!(value >= 0 && value <= 1)) {
      saturation.Problem(key,
                         absl::StrCat("Invalid value: ", value, ": not in valid range [0, 1]"));
    }
    return value;
  };
  args.low = read("low", args.low);
  args.high = read("high", args.high);
  if (args.low > args.high) {
    saturation.Problem(
        "low", absl::StrCat("Invalid value: ", args.low, ": must not be above high, ", args.high));
  }
  args.types = sdk::WorkloadTypes::Read(root);
  args.memory = GpuMemory::Read(root);
  args.facts = sdk::ReadNodeFactsOptions(root);
  return args;
}

}  // namespace

sdk::PluginDescriptor Descriptor() {
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  d.needed_fields = sdk::GpuIdFields();
  sdk::DeclareGpuClaims(&d.declared_resources);
  for (const char* key : {kMemoryAnnotation, kKaiMemoryAnnotation, kKaiDevicesAnnotation,
                          sdk::kHamiDevicesAnnotation})
    d.needed_fields.push_back(sdk::AnnotationField(key));
  d.signature = sdk::SignedParts(d.needed_fields, {"spec.resourceClaims"});
  for (std::string& part : sdk::WorkloadTypeParts()) d.signature->push_back(std::move(part));
  d.maturity = sdk::Maturity::kAlpha;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<WorkloadStrategyScorer>(ReadArgs(context.args->root()),
                                                    context.cluster);
  };
  return d;
}

}  // namespace outboard::workload_strategy_scorer
