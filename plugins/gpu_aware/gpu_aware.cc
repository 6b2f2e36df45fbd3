#include "plugins/gpu_aware/gpu_aware.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/known_verdicts.h"
#include "plugin_host/sdk/label_values.h"
#include "plugin_host/sdk/node_facts/node_facts.h"
#include "plugin_host/sdk/node_facts/unknown_nodes.h"
#include "plugin_host/sdk/node_memo.h"
#include "plugin_host/sdk/node_sets.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/score.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::gpu_aware {
namespace {

constexpr char kName[] = "GPUAware";

constexpr char kUnknownNodesMetric[] = "outboard_gpu_aware_unknown_nodes";

std::string ArgsSchema() {
  return absl::StrCat(R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "minGPUMemoryGB": {"type": "number", "minimum": 0, "default": 8,
      "description": "Memory that each GPU of a node must have, in GB."},
    "illNodes": {"enum": ["reject", "score-last", "ignore"], "default": "reject",
      "description": "What happens with nodes whose status says that their GPUs are ill."},
    "generations": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0},
      "description": "Further generations, or other values for v100 (7), a100 (8), h100 (9)."},
    )json",
                      sdk::kGpuResourceNamesSchema, ",\n    ", sdk::kNodeFactsSchema, "}}");
}

constexpr int64_t kMaxGeneration = 1000;
constexpr int64_t kAllGpus = std::numeric_limits<int64_t>::max();
// The resource that stands for the GPUs in ResourceSlices.
constexpr char kNvidiaGpu[] = "nvidia.com/gpu";

enum class OnIllNode { kReject, kScoreLast, kIgnore };

struct Args {
  double min_memory_gb = 8;
  OnIllNode on_ill_node = OnIllNode::kReject;
  sdk::GpuResources gpus;
  sdk::NodeFactsOptions facts;
};

// Why a node is not good enough: too few of one GPU resource (by index in the demand), too little
// memory, or ill GPUs.
struct Lack {
  size_t resource = kMemory;
  int64_t available = 0;
  bool for_good = false;  // Evicting pods does not help.
  double memory_gb = 0;
  std::string illness = {};

  static constexpr size_t kMemory = ~size_t{0};
  static constexpr size_t kHealth = kMemory - 1;
  friend bool operator==(const Lack&, const Lack&) = default;
};

// The GPU resources that a pod requests, each with an amount above 0.
struct Demand : sdk::AttemptState {
  std::vector<std::pair<std::string, int64_t>> gpus;
  std::vector<std::optional<uint32_t>> columns;  // In NodeTable::extended.
  bool with_claims = false;                      // `gpus` is one sum, for all kinds of GPUs.
  sdk::KnownVerdicts<Lack> verdicts;
};

// A node's terms of the score, and the memory of its GPUs.
struct NodeTerms {
  double memory_gb = 0;  // Of one GPU; 0 where unknown.
  double memory_term = 0;
  double interconnect_term = 0;
  double generation_term = 0;
};

// What is wrong with a node's GPUs.
struct NodeHealth {
  std::string rejection;         // Why pods with GPUs must not go there; empty: they may.
  bool is_last = false;          // Such pods go there only if no other node is left.
  int64_t untainted = kAllGpus;  // GPUs, in units of the resource, whose device has no taint.
  bool limits() const { return !rejection.empty() || untainted != kAllGpus; }
};

class GpuAware : public sdk::Plugin,
                 public sdk::FilterPlugin,
                 public sdk::PreScorePlugin,
                 public sdk::ScorePlugin,
                 public sdk::QueueingHintPlugin,
                 public sdk::ClusterObserver {
 public:
  GpuAware(Args args, const sdk::PluginContext& context)
      : args_(std::move(args)), cluster_(context.cluster), reader_(args_.facts) {
    const auto unknown = [&](const char* metric_value, const char* fact, const char* then) {
      return std::make_unique<sdk::UnknownNodes>(
          kName, fact, then,
          context.metrics->NewGauge(kUnknownNodesMetric, {context.profile, metric_value}));
    };
    unknown_memory_ =
        unknown("memory", "the memory of its GPUs", "such nodes pass, and get no score for it");
    unknown_generation_ =
        unknown("generation", "the generation of its GPUs", "such nodes get no score for it");
    unknown_topology_ =
        unknown("topology", "how the GPUs are connected", "such nodes get no score for it");
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    auto* demand = attempt.filter_state<Demand>();
    if (demand == nullptr) {
      demand = &attempt.NewFilterState<Demand>();
      demand->gpus = args_.gpus.DemandByName(attempt.pod().proto());
      for (const auto& [name, need] : demand->gpus) {
        const auto& known = attempt.cluster().nodes().extended_by_name;
        const auto column = known.find(name);
        demand->columns.push_back(column == known.end() ? std::nullopt
                                                        : std::optional(column->second));
      }
      without_gpus_.Follow(attempt.cluster().nodes());
      // A pod with several resources names kinds of GPUs, which claims do not.
      if (args_.gpus.active_claims() != nullptr && demand->gpus.size() <= 1) {
        demand->with_claims = true;
        demand->gpus.clear();
        const int64_t need = args_.gpus.DemandOf(attempt.pod().proto());
        if (need > 0) demand->gpus.emplace_back("", need);
      }
    }
    if (demand->gpus.empty()) return;
    sdk::KnownVerdicts<Lack>::Block rejections(&demand->verdicts, &sink);
    const auto reject = [&](uint64_t nodes, const Lack& lack) {
      rejections.RejectAll(nodes, lack, [&] { return VerdictOf(*demand, lack); });
    };
    sdk::NodeBlock left = block;
    if (demand->with_claims) {
      const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(attempt.cluster(), &attempt.pod().proto());
      const int64_t need = demand->gpus[0].second;
      block.ForEach([&](int i, sdk::Slot slot) {
        const NodeHealth& health = health_[slot];
        const int64_t all = gpus.Allocatable(slot);
        const int64_t total = std::min(all, health.untainted);
        const int64_t free = std::max<int64_t>(0, total - (all - gpus.Free(slot)));
        const bool is_ill = all > 0 && !health.rejection.empty();
        if (!is_ill && need <= free) return;
        reject(uint64_t{1} << i, is_ill ? Lack{Lack::kHealth, 0, true, 0, health.rejection}
                                        : Lack{0, free, need > total, 0, ""});
        left.candidates &= ~(uint64_t{1} << i);
      });
    } else {
      // Most nodes that lack GPUs have none at all, so they lack the pod's first resource.
      const auto has_none = [&](sdk::Slot slot) { return has_gpus_[slot] == 0; };
      const uint64_t without = without_gpus_.Bits(0, block, has_none);
      reject(left.candidates & without, Lack{0, 0, true, 0});
      left.candidates &= ~without;
      if (nodes_limited_ > 0) RejectIllNodes(*demand, attempt.cluster().nodes(), reject, &left);
      for (size_t k = 0; k < demand->gpus.size() && left.candidates != 0; ++k) {
        const int64_t need = demand->gpus[k].second;
        if (!demand->columns[k]) {  // No node has any.
          reject(left.candidates, Lack{k, 0, true, 0});
          return;
        }
        const sdk::ExtendedColumn& column = attempt.cluster().nodes().extended[*demand->columns[k]];
        const int64_t* const allocatable = column.allocatable.data();
        const int64_t* const requested = column.requested.data();
        uint64_t lacking = 0;
        left.ForEach([&](int i, sdk::Slot slot) {
          lacking |= uint64_t{need > allocatable[slot] - requested[slot]} << i;
        });
        sdk::NodeBlock{block.slots, lacking}.ForEach([&](int i, sdk::Slot slot) {
          const int64_t free = std::max<int64_t>(0, allocatable[slot] - requested[slot]);
          // Evicting pods helps only if the node has enough GPUs in total.
          reject(uint64_t{1} << i, Lack{k, free, need > allocatable[slot], 0});
        });
        left.candidates &= ~lacking;
      }
    }
    if (nodes_lacking_memory_ == 0) return;
    left.ForEachThat(
        [&](sdk::Slot slot) { return lacks_memory_[slot] != 0; },
        [&](int i, sdk::Slot slot) {
          reject(uint64_t{1} << i, Lack{Lack::kMemory, 0, true, facts_[slot].memory_gb});
        });
  }

  sdk::Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const sdk::Slot>) const override {
    return args_.gpus.DemandOf(attempt.pod().proto()) > 0 ? sdk::Verdict::Success()
                                                          : sdk::Verdict::Skip();
  }

  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    if (PreScore(attempt, nodes).skip()) {  // The profile enables only score, not preScore.
      std::fill(raw.begin(), raw.end(), 0);
      return sdk::Verdict::Success();
    }
    const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(attempt.cluster());
    scores_.Of(attempt.cluster().nodes(), nodes, raw,
               [&](sdk::Slot slot) { return static_cast<int64_t>(TermsOf(gpus, slot).total); });
    if (VLOG_IS_ON(4)) {
      for (const sdk::Slot slot : nodes)
        Log(attempt.pod(), gpus, attempt.cluster().node(slot), TermsOf(gpus, slot));
    }
    return sdk::Verdict::Success();
  }

  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    const sdk::GpuColumns gpus = args_.gpus.ColumnsOf(attempt.cluster());
    std::vector<std::vector<sdk::ScoreTerm>> explained;
    for (const sdk::Slot slot : nodes) {
      std::vector<sdk::ScoreTerm>& terms = explained.emplace_back();
      if (gpus.Allocatable(slot) <= 0 || health_[slot].is_last) continue;
      const NodeTerms& facts = facts_[slot];
      terms = {{"free", TermsOf(gpus, slot).free},
               {"memory", facts.memory_term},
               {"interconnect", facts.interconnect_term},
               {"generation", facts.generation_term}};
    }
    return explained;
  }

  sdk::Verdict Normalize(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                         absl::Span<int64_t> scores) const override {
    sdk::NormalizeScores(sdk::kMaxScore, /*reverse=*/false, scores);
    return sdk::Verdict::Success();
  }

  // Helpful events: a node that could take the pod if empty, and that could not before or now has
  // more GPUs; a pod that releases GPUs of a requested kind.
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    if (args_.gpus.active_claims() != nullptr) return HintWithClaims(pod, change);
    const std::vector<std::pair<std::string, int64_t>> demand =
        args_.gpus.DemandByName(pod.proto());
    bool helps;
    if (change.new_object != nullptr) {
      helps = true;  // A ResourceSlice: something is known of a node.
    } else if (change.new_node != nullptr) {
      helps = CouldTake(demand, *change.new_node) &&
              (change.old_node == nullptr || !CouldTake(demand, *change.old_node) ||
               std::any_of(demand.begin(), demand.end(), [&](const auto& gpus) {
                 return GpusOf(*change.new_node, gpus.first) > GpusOf(*change.old_node, gpus.first);
               }));
    } else if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) {
      helps = true;
    } else {
      const v1beta1::Pod& before = *change.old_pod;
      const bool had_place = !before.node_name().empty() || !before.nominated_node_name().empty();
      helps = had_place && std::any_of(demand.begin(), demand.end(), [&](const auto& gpus) {
                const int64_t left =
                    change.new_pod == nullptr ? 0 : AmountOf(*change.new_pod, gpus.first);
                return AmountOf(before, gpus.first) > left;
              });
    }
    return helps ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }

  void OnReset() override {
    reader_.Clear();
    args_.gpus.claims().Clear();
    for (sdk::UnknownNodes* unknown : UnknownFacts()) unknown->Clear();
    scores_.Clear();
    facts_.clear();
    lacks_memory_.clear();
    nodes_lacking_memory_ = 0;
    has_gpus_.clear();
    without_gpus_.Forget();
    health_.clear();
    nodes_limited_ = 0;
    malformed_.Clear();
  }
  void OnNodeChanged(sdk::Slot slot) override {
    if (slot >= facts_.size()) {
      facts_.resize(slot + 1);
      lacks_memory_.resize(slot + 1, 0);
      has_gpus_.resize(slot + 1, 0);
      health_.resize(slot + 1);
    }
    const v1beta1::Node& node = cluster_.node(slot).proto();
    std::vector<sdk::MalformedLabel> malformed;
    const sdk::NodeFacts read = reader_.Of(node, &malformed);
    NodeTerms facts;
    facts.memory_gb = read.memory_gb.value.value_or(0);
    facts.memory_term = facts.memory_gb * 3;
    facts.interconnect_term = HasNvlink(read) ? 100 : 0;
    facts.generation_term = static_cast<double>(read.generation.value.value_or(0) * 10);
    facts_[slot] = facts;
    SetLacksMemory(slot, LacksMemory(read));
    SetHealth(slot, HealthOf(read));
    const std::vector<std::string>& names = args_.gpus.names();
    const bool has = std::any_of(names.begin(), names.end(),
                                 [&](const std::string& name) { return GpusOf(node, name) > 0; });
    if (std::exchange(has_gpus_[slot], has ? 1 : 0) != (has ? 1 : 0)) without_gpus_.Forget();
    unknown_memory_->Set(slot, node.name(), has && !read.memory_gb.known());
    unknown_generation_->Set(slot, node.name(), has && !read.generation.known());
    unknown_topology_->Set(slot, node.name(), has && !read.topology.known());
    for (const sdk::MalformedLabel& label : malformed)
      malformed_.Warn(absl::StrCat("node ", node.name()), label.key, label.value, label.wanted);
  }
  void OnNodeRemoved(sdk::Slot slot, const std::string& name) override {
    facts_[slot] = NodeTerms();
    SetLacksMemory(slot, false);
    SetHealth(slot, NodeHealth());
    for (sdk::UnknownNodes* unknown : UnknownFacts()) unknown->Forget(slot);
    malformed_.Forget(absl::StrCat("node ", name));
  }

  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    if (args_.gpus.claims().Set(object)) scores_.Clear();
    ReadAgain(reader_.SetObject(object));
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override {
    if (args_.gpus.claims().Remove(object)) scores_.Clear();
    ReadAgain(reader_.RemoveObject(object));
  }

 private:
  // Any node may have devices for claims. Of pods those help that release GPUs.
  sdk::Hint HintWithClaims(const sdk::PodView& pod, const sdk::ObjectChange& change) const {
    if (change.new_object != nullptr || change.new_node != nullptr) return sdk::Hint::kQueue;
    if (change.new_pod != nullptr && change.new_pod->uid() == pod.uid()) return sdk::Hint::kQueue;
    const v1beta1::Pod& before = *change.old_pod;
    const bool had_place = !before.node_name().empty() || !before.nominated_node_name().empty();
    const int64_t left = change.new_pod == nullptr ? 0 : args_.gpus.DemandOf(*change.new_pod);
    return had_place && args_.gpus.DemandOf(before) > left ? sdk::Hint::kQueue : sdk::Hint::kSkip;
  }
  static bool HasNvlink(const sdk::NodeFacts& facts) {
    return facts.topology.value == sdk::GpuTopology::kNvlink ||
           facts.topology.value == sdk::GpuTopology::kNvswitch;
  }
  bool LacksMemory(const sdk::NodeFacts& facts) const {
    return facts.memory_gb.known() && *facts.memory_gb.value < args_.min_memory_gb;
  }
  std::array<sdk::UnknownNodes*, 3> UnknownFacts() const {
    return {unknown_memory_.get(), unknown_generation_.get(), unknown_topology_.get()};
  }
  // A node whose ResourceSlices changed; empty: none.
  void ReadAgain(const std::string& node) {
    if (node.empty()) return;
    if (const auto view = cluster_.FindNode(node)) OnNodeChanged(view->slot());
    scores_.Clear();  // The node itself has not changed.
  }
  void SetLacksMemory(sdk::Slot slot, bool lacks) {
    const uint8_t now = lacks ? 1 : 0;
    nodes_lacking_memory_ += now - std::exchange(lacks_memory_[slot], now);
  }
  static int64_t GpusOf(const v1beta1::Node& node, const std::string& name) {
    const auto& extended = node.allocatable().scalar();
    const auto it = extended.find(name);
    return it == extended.end() ? 0 : it->second;
  }
  static int64_t AmountOf(const v1beta1::Pod& pod, const std::string& name) {
    sdk::PodRequestsOptions options;
    options.use_status = true;
    return sdk::ComputePodRequests(pod, options).Get(name);
  }
  bool CouldTake(const std::vector<std::pair<std::string, int64_t>>& demand,
                 const v1beta1::Node& node) const {
    const sdk::NodeFacts facts = reader_.Of(node, nullptr);  // Malformed labels were reported.
    const NodeHealth health = HealthOf(facts);
    for (const auto& [name, need] : demand) {
      const int64_t usable = name == kNvidiaGpu ? health.untainted : kAllGpus;
      if (std::min(GpusOf(node, name), usable) < need) return false;
    }
    return health.rejection.empty() && !LacksMemory(facts);
  }

  // What is wrong with the node's GPUs, as far as this plugin is to mind it.
  NodeHealth HealthOf(const sdk::NodeFacts& facts) const {
    NodeHealth health;
    if (args_.on_ill_node == OnIllNode::kIgnore) return health;
    std::vector<std::string> certain;
    for (const sdk::GpuProblem& problem :
         facts.gpu_problems.value.value_or(std::vector<sdk::GpuProblem>())) {
      health.is_last |= problem.certainty != sdk::GpuProblem::Certainty::kCounted;
      if (problem.certainty == sdk::GpuProblem::Certainty::kCertain)
        certain.push_back(problem.what);
    }
    if (args_.on_ill_node == OnIllNode::kReject && !certain.empty())
      health.rejection = absl::StrCat("GPUs are ill: ", absl::StrJoin(certain, ", "));
    health.untainted = UntaintedGpus(facts);
    return health;
  }
  // In units of nvidia.com/gpu. With MIG these units are parts of GPUs, and taints do not count.
  static int64_t UntaintedGpus(const sdk::NodeFacts& facts) {
    const sdk::GpuSharing sharing = facts.sharing.value.value_or(sdk::GpuSharing());
    const bool is_mig = sharing.kind == sdk::GpuSharing::Kind::kMigSingle ||
                        sharing.kind == sdk::GpuSharing::Kind::kMigMixed;
    if (facts.tainted_gpus.value.value_or(0) == 0 || is_mig || !facts.gpus.known()) return kAllGpus;
    return (*facts.gpus.value - *facts.tainted_gpus.value) * sharing.replicas;
  }
  void SetHealth(sdk::Slot slot, NodeHealth health) {
    nodes_limited_ += (health.limits() ? 1 : 0) - (health_[slot].limits() ? 1 : 0);
    health_[slot] = std::move(health);
  }
  // Rejects nodes of `left` with ill GPUs, and those with too few free GPUs that have no taint.
  // Removes them from `left`. A running pod may use a tainted GPU, which only the kubelet knows:
  // all are assumed to use others.
  template <typename Reject>
  void RejectIllNodes(const Demand& demand, const sdk::NodeTable& nodes, const Reject& reject,
                      sdk::NodeBlock* left) const {
    uint64_t rejected = 0;
    left->ForEachThat([&](sdk::Slot slot) { return health_[slot].limits(); },
                      [&](int i, sdk::Slot slot) {
                        if (const std::optional<Lack> lack = LackOfHealth(demand, nodes, slot)) {
                          reject(uint64_t{1} << i, *lack);
                          rejected |= uint64_t{1} << i;
                        }
                      });
    left->candidates &= ~rejected;
  }
  std::optional<Lack> LackOfHealth(const Demand& demand, const sdk::NodeTable& nodes,
                                   sdk::Slot slot) const {
    const NodeHealth& health = health_[slot];
    if (!health.rejection.empty()) return Lack{Lack::kHealth, 0, true, 0, health.rejection};
    for (size_t k = 0; k < demand.gpus.size(); ++k) {
      if (demand.gpus[k].first != kNvidiaGpu || !demand.columns[k]) continue;
      const sdk::ExtendedColumn& column = nodes.extended[*demand.columns[k]];
      const int64_t total = std::min(column.allocatable[slot], health.untainted);
      const int64_t free = std::max<int64_t>(0, total - column.requested[slot]);
      const int64_t need = demand.gpus[k].second;
      if (need > free) return Lack{k, free, need > total, 0, ""};
    }
    return std::nullopt;
  }

  sdk::Verdict VerdictOf(const Demand& demand, const Lack& lack) const {
    if (lack.resource == Lack::kHealth) return sdk::Verdict::Unresolvable(lack.illness);
    if (lack.resource == Lack::kMemory) {
      return sdk::Verdict::Unresolvable(absl::StrCat("insufficient GPU memory: need ",
                                                     args_.min_memory_gb, "GB, available ",
                                                     lack.memory_gb, "GB"));
    }
    const std::string reason =
        absl::StrCat("insufficient GPU: need ", demand.gpus[lack.resource].second, ", available ",
                     lack.available);
    return lack.for_good ? sdk::Verdict::Unresolvable(reason) : sdk::Verdict::Unschedulable(reason);
  }

  struct Terms {
    double free = 0;
    double total = 0;
  };
  // A node without GPUs, or with ill ones, scores 0; a term without a label adds nothing.
  Terms TermsOf(const sdk::GpuColumns& gpus, sdk::Slot slot) const {
    const int64_t allocatable = gpus.Allocatable(slot);
    if (allocatable <= 0 || health_[slot].is_last) return {};
    const NodeTerms& facts = facts_[slot];
    const double allocated_percent = std::clamp(
        100.0 * static_cast<double>(gpus.Requested(slot)) / static_cast<double>(allocatable), 0.0,
        100.0);
    Terms terms;
    terms.free = (100 - allocated_percent) * 2;
    terms.total = terms.free + facts.memory_term + facts.interconnect_term + facts.generation_term;
    return terms;
  }
  void Log(const sdk::PodView& pod, const sdk::GpuColumns& gpus, const sdk::NodeView& node,
           const Terms& terms) const {
    const int64_t allocatable = gpus.Allocatable(node.slot());
    if (allocatable <= 0 || health_[node.slot()].is_last) {
      VLOG(4) << "GPUAware: node " << node.name() << " pod " << pod.uid()
              << (allocatable <= 0 ? ": no GPUs, score 0" : ": ill GPUs, score 0");
      return;
    }
    const NodeTerms& facts = facts_[node.slot()];
    VLOG(4) << "GPUAware: node " << node.name() << " pod " << pod.uid() << ": GPUs "
            << gpus.Requested(node.slot()) << "/" << allocatable << " allocated (" << terms.free
            << ") + memory (" << facts.memory_term << ") + interconnect ("
            << facts.interconnect_term << ") + generation (" << facts.generation_term
            << ") = " << terms.total;
  }

  const Args args_;
  const sdk::ClusterView cluster_;
  sdk::NodeFactsReader reader_;
  std::unique_ptr<sdk::UnknownNodes> unknown_memory_, unknown_generation_, unknown_topology_;
  std::vector<NodeTerms> facts_;       // By slot.
  std::vector<uint8_t> lacks_memory_;  // By slot: below minGPUMemoryGB.
  int64_t nodes_lacking_memory_ = 0;
  std::vector<uint8_t> has_gpus_;   // By slot: of any of the resources.
  std::vector<NodeHealth> health_;  // By slot.
  int64_t nodes_limited_ = 0;       // Where health limits what pods get.
  // The same nodes for all pods, so one set.
  mutable sdk::NodeSets<int> without_gpus_;
  mutable sdk::NodeMemo<int64_t> scores_;
  sdk::MalformedValues malformed_{kName};
};

OnIllNode ReadOnIllNode(const sdk::ArgsObject& root) {
  const std::string text = root.String("illNodes", "reject");
  if (text == "score-last") return OnIllNode::kScoreLast;
  if (text == "ignore") return OnIllNode::kIgnore;
  if (text != "reject")
    root.Problem("illNodes", sdk::NotSupported(text, {"ignore", "reject", "score-last"}));
  return OnIllNode::kReject;
}

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.min_memory_gb = root.Double("minGPUMemoryGB", args.min_memory_gb);
  if (args.min_memory_gb < 0) {
    root.Problem("minGPUMemoryGB",
                 absl::StrCat("Invalid value: ", args.min_memory_gb, ": must not be negative"));
  }
  args.on_ill_node = ReadOnIllNode(root);
  args.gpus = sdk::GpuResources::Read(root);
  args.facts = sdk::ReadNodeFactsOptions(root);
  args.facts.checks_generations = true;
  const sdk::ArgsObject generations = root.Object("generations");
  for (const std::string& key : generations.Keys()) {
    const int64_t number = generations.Int(key, 0);
    if (number < 0 || number > kMaxGeneration) {
      generations.Problem(key, sdk::InvalidValue(number, "not in valid range [0, 1000]"));
    }
    args.facts.generations[absl::AsciiStrToLower(key)] = number;
  }
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
  d.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_SCALE_DOWN}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE,
                           Event::ACTION_UPDATE_NODE_LABEL, Event::ACTION_UPDATE_NODE_CONDITION}),
      sdk::WakeOn(sdk::kResourceSlices, {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  d.needed_fields = sdk::NodeFactsFields();
  d.needed_fields.push_back("Node.status.conditions");  // Ill GPUs.
  sdk::DeclareGpuClaims(&d.declared_resources);
  d.metrics = {
      {kUnknownNodesMetric,
       sdk::MetricType::kGauge,
       {"profile", "fact"},
       "Nodes with GPUs of which no component publishes a fact: memory, generation, topology."}};
  d.signature = sdk::SignedParts(d.needed_fields, {"spec.containers", "spec.resourceClaims"});
  d.maturity = sdk::Maturity::kBeta;
  d.create = [](const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<GpuAware>(ReadArgs(context.args->root()), context);
  };
  return d;
}

}  // namespace outboard::gpu_aware
