#include "plugins/node_resources_fit/node_resources_fit.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/node_local_plugin.h"
#include "plugin_host/sdk/queueing_hint.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"
#include "plugins/node_resources_fit/hints.h"
#include "plugins/node_resources_fit/scoring_strategy.h"

namespace outboard::node_resources_fit {
namespace {

using sdk::Slot;
using sdk::Verdict;

constexpr uint32_t kNoColumn = 0xffffffff;
// Bits in a set of insufficient resources; extended resources follow.
constexpr int kPodsBit = 0, kCpuBit = 1, kMemoryBit = 2, kEphemeralBit = 3, kFirstExtendedBit = 4;
constexpr size_t kMaxExtended = 56;
constexpr uint64_t kUnresolvableBit = uint64_t{1} << 63;

// The pod's requests, with the columns of the nodes.
struct FilterState : sdk::AttemptState {
  struct Extended {
    std::string name;
    uint32_t column = kNoColumn;  // kNoColumn: no node has it.
    int64_t amount = 0;
    // A DeviceClass represents the resource: DynamicResources checks nodes that have none of it.
    bool of_class = false;
  };
  int64_t cpu = 0, memory = 0, ephemeral = 0;
  bool counts_pods_only = false;
  std::vector<Extended> extended;
  // Cached verdicts, by the set of insufficient resources.
  std::vector<std::pair<uint64_t, std::unique_ptr<Verdict>>> verdicts;

  const Verdict& VerdictFor(uint64_t lacking);
};

const Verdict& FilterState::VerdictFor(uint64_t lacking) {
  for (const auto& [known, verdict] : verdicts) {
    if (known == lacking) return *verdict;
  }
  std::vector<std::string> reasons;
  auto lacks = [&](int bit) { return (lacking >> bit & 1) != 0; };
  if (lacks(kPodsBit)) reasons.push_back("Too many pods");
  if (lacks(kCpuBit)) reasons.push_back("Insufficient cpu");
  if (lacks(kMemoryBit)) reasons.push_back("Insufficient memory");
  if (lacks(kEphemeralBit)) reasons.push_back("Insufficient ephemeral-storage");
  for (size_t i = 0; i < extended.size(); ++i) {
    if (lacks(kFirstExtendedBit + static_cast<int>(i))) {
      reasons.push_back(absl::StrCat("Insufficient ", extended[i].name));
    }
  }
  verdicts.emplace_back(lacking,
                        std::make_unique<Verdict>((lacking & kUnresolvableBit) != 0
                                                      ? v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
                                                      : v1beta1::CODE_UNSCHEDULABLE,
                                                  std::move(reasons)));
  return *verdicts.back().second;
}

// The pod's request for each scored resource.
struct ScoreState : sdk::AttemptState {
  std::vector<int64_t> requests;
};

class NodeResourcesFit : public sdk::Plugin,
                         public sdk::NodeLocalPlugin,
                         public sdk::PreFilterPlugin,
                         public sdk::FilterPlugin,
                         public sdk::CapacityPlugin,
                         public sdk::PreScorePlugin,
                         public sdk::ScorePlugin,
                         public sdk::QueueingHintPlugin,
                         public sdk::ClusterObserver {
 public:
  NodeResourcesFit(std::set<std::string> ignored, std::set<std::string> ignored_groups,
                   ScoringStrategy strategy)
      : ignored_(std::move(ignored)),
        ignored_groups_(std::move(ignored_groups)),
        strategy_(std::move(strategy)) {
    for (const ResourceWeight& resource : strategy_.resources()) {
      scalar_.push_back(sdk::IsScalarResourceName(resource.name));
    }
  }

  Verdict PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const override;
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override;
  void LimitCapacity(const sdk::Attempt& attempt, absl::Span<const Slot> slots,
                     absl::Span<int64_t> at_most) const override;
  Verdict PreScore(const sdk::Attempt& attempt, absl::Span<const Slot> nodes) const override;
  Verdict Score(const sdk::Attempt& attempt, absl::Span<const Slot> nodes,
                absl::Span<int64_t> raw) const override;
  sdk::Hint QueueingHint(const sdk::PodView& pod, const sdk::ObjectChange& change) const override {
    return HintOf(pod.proto(), change, classes_);
  }

  void OnReset() override { classes_.Clear(); }
  void OnObjectChanged(const v1beta1::ClusterObject* old,
                       const v1beta1::ClusterObject& object) override {
    classes_.Change(old, object);
  }
  void OnObjectRemoved(const v1beta1::ClusterObject& object) override { classes_.Remove(object); }

 private:
  bool Ignored(const std::string& resource) const;
  void MakeScoreState(const sdk::Attempt& attempt) const;

  const std::set<std::string> ignored_;
  const std::set<std::string> ignored_groups_;
  const ScoringStrategy strategy_;
  std::vector<bool> scalar_;  // By scored resource.
  sdk::DeviceClasses classes_;
};

bool NodeResourcesFit::Ignored(const std::string& resource) const {
  if (!sdk::IsExtendedResourceName(resource)) return false;
  return ignored_.contains(resource) ||
         (!ignored_groups_.empty() &&
          ignored_groups_.contains(resource.substr(0, resource.find('/'))));
}

Verdict NodeResourcesFit::PreFilter(const sdk::Attempt& attempt, sdk::PreFilterResult*) const {
  // A pending pod counts by its spec; statuses count only for pods on nodes.
  const v1beta1::Pod& pod = attempt.pod().proto();
  const bool spec_is_usage = pod.container_statuses().empty();
  const sdk::Resources computed = spec_is_usage ? sdk::Resources() : sdk::ComputePodRequests(pod);
  const sdk::Resources& requests = spec_is_usage ? attempt.pod().usage().requests : computed;

  FilterState& state = attempt.NewFilterState<FilterState>();
  state.cpu = requests.cpu_millis;
  state.memory = requests.memory_bytes;
  state.ephemeral = requests.ephemeral_storage_bytes;
  const sdk::NodeTable& nodes = attempt.cluster().nodes();
  for (const auto& [name, amount] : requests.extended) {
    if (amount == 0 || !sdk::IsScalarResourceName(name) || Ignored(name)) continue;
    if (state.extended.size() == kMaxExtended) {
      return Verdict::Error(
          absl::StrCat("pod requests more than ", kMaxExtended, " extended resources"));
    }
    auto column = nodes.extended_by_name.find(name);
    state.extended.push_back({name,
                              column == nodes.extended_by_name.end() ? kNoColumn : column->second,
                              amount, classes_.ClassOf(name) != nullptr});
  }
  state.counts_pods_only =
      state.cpu == 0 && state.memory == 0 && state.ephemeral == 0 && state.extended.empty();
  return Verdict::Success();
}

void NodeResourcesFit::Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
                              sdk::FilterSink& sink) const {
  FilterState* state = attempt.filter_state<FilterState>();
  if (state == nullptr) {
    block.ForEach(
        [&](int i, Slot) { sink.Fail(i, "error reading \"PreFilterNodeResourcesFit\""); });
    return;
  }
  const sdk::NodeTable& nodes = attempt.cluster().nodes();
  const bool verbose = VLOG_IS_ON(4);
  block.ForEach([&](int i, Slot slot) {
    uint64_t lacking = 0;
    if (nodes.pod_count[slot] + 1 > nodes.allocatable_pods[slot]) lacking |= 1 << kPodsBit;
    auto compare = [&](int64_t wanted, int64_t allocatable, int64_t requested, int bit) {
      if (wanted <= 0 || wanted <= allocatable - requested) return;
      lacking |= uint64_t{1} << bit;
      if (wanted > allocatable) lacking |= kUnresolvableBit;
    };
    if (!state->counts_pods_only) {
      compare(state->cpu, nodes.allocatable_cpu[slot], nodes.requested_cpu[slot], kCpuBit);
      compare(state->memory, nodes.allocatable_memory[slot], nodes.requested_memory[slot],
              kMemoryBit);
      compare(state->ephemeral, nodes.allocatable_ephemeral[slot], nodes.requested_ephemeral[slot],
              kEphemeralBit);
      for (size_t k = 0; k < state->extended.size(); ++k) {
        const FilterState::Extended& wanted = state->extended[k];
        const bool known = wanted.column != kNoColumn;
        if (wanted.of_class && (!known || nodes.extended[wanted.column].allocatable[slot] <= 0)) {
          continue;
        }
        compare(wanted.amount, known ? nodes.extended[wanted.column].allocatable[slot] : 0,
                known ? nodes.extended[wanted.column].requested[slot] : 0,
                kFirstExtendedBit + static_cast<int>(k));
      }
    }
    if (verbose) {
      VLOG(4) << "NodeResourcesFit filter pod=" << attempt.pod().uid()
              << " node=" << nodes.nodes[slot].name() << " cpu=" << state->cpu << " of "
              << nodes.allocatable_cpu[slot] - nodes.requested_cpu[slot]
              << " memory=" << state->memory << " of "
              << nodes.allocatable_memory[slot] - nodes.requested_memory[slot]
              << " pods=" << nodes.pod_count[slot] << "/" << nodes.allocatable_pods[slot]
              << " fits=" << (lacking == 0);
    }
    if (lacking != 0) sink.Reject(i, state->VerdictFor(lacking));
  });
}

void NodeResourcesFit::LimitCapacity(const sdk::Attempt& attempt, absl::Span<const Slot> slots,
                                     absl::Span<int64_t> at_most) const {
  const FilterState* state = attempt.filter_state<FilterState>();
  if (state == nullptr) return;
  const sdk::NodeTable& nodes = attempt.cluster().nodes();
  const auto limit = [&](int64_t wanted, const std::vector<int64_t>& allocatable,
                         const std::vector<int64_t>& requested) {
    if (wanted <= 0) return;
    for (size_t i = 0; i < slots.size(); ++i) {
      const int64_t free = std::max<int64_t>(0, allocatable[slots[i]] - requested[slots[i]]);
      at_most[i] = std::min(at_most[i], free / wanted);
    }
  };
  limit(1, nodes.allocatable_pods, nodes.pod_count);
  limit(state->cpu, nodes.allocatable_cpu, nodes.requested_cpu);
  limit(state->memory, nodes.allocatable_memory, nodes.requested_memory);
  limit(state->ephemeral, nodes.allocatable_ephemeral, nodes.requested_ephemeral);
  for (const FilterState::Extended& wanted : state->extended) {
    // Without a column no node has the resource. DynamicResources counts resources of a
    // DeviceClass.
    if (wanted.of_class || wanted.column == kNoColumn) continue;
    const auto& column = nodes.extended[wanted.column];
    limit(wanted.amount, column.allocatable, column.requested);
  }
}

void NodeResourcesFit::MakeScoreState(const sdk::Attempt& attempt) const {
  // kube-scheduler uses only the containers here, even if the pod has pod-level requests.
  sdk::PodRequestsOptions options;
  options.skip_pod_level = true;
  options.missing_cpu_millis = sdk::kDefaultCpuMillis;
  options.missing_memory_bytes = sdk::kDefaultMemoryBytes;
  const sdk::Resources requests = sdk::ComputePodRequests(attempt.pod().proto(), options);
  ScoreState& state = attempt.NewScoreState<ScoreState>();
  for (const ResourceWeight& resource : strategy_.resources()) {
    state.requests.push_back(requests.Get(resource.name));
  }
}

Verdict NodeResourcesFit::PreScore(const sdk::Attempt& attempt, absl::Span<const Slot>) const {
  MakeScoreState(attempt);
  return Verdict::Success();
}

Verdict NodeResourcesFit::Score(const sdk::Attempt& attempt, absl::Span<const Slot> slots,
                                absl::Span<int64_t> raw) const {
  if (attempt.score_state<ScoreState>() == nullptr) MakeScoreState(attempt);
  const std::vector<int64_t>& requests = attempt.score_state<ScoreState>()->requests;
  const sdk::NodeTable& nodes = attempt.cluster().nodes();

  // The columns of each resource that counts for this pod.
  struct Scored {
    const int64_t* allocatable;
    const int64_t* requested;
    int64_t request;
    int64_t weight;
  };
  std::vector<Scored> scored;
  for (size_t r = 0; r < requests.size(); ++r) {
    const ResourceWeight& resource = strategy_.resources()[r];
    if (scalar_[r] && requests[r] == 0) continue;
    Scored entry{nullptr, nullptr, requests[r], resource.weight};
    if (resource.name == "cpu") {
      entry.allocatable = nodes.allocatable_cpu.data();
      entry.requested = nodes.nonzero_cpu.data();
    } else if (resource.name == "memory") {
      entry.allocatable = nodes.allocatable_memory.data();
      entry.requested = nodes.nonzero_memory.data();
    } else if (resource.name == "ephemeral-storage") {
      entry.allocatable = nodes.allocatable_ephemeral.data();
      entry.requested = nodes.requested_ephemeral.data();
    } else {
      auto column = nodes.extended_by_name.find(resource.name);
      if (column == nodes.extended_by_name.end()) continue;
      entry.allocatable = nodes.extended[column->second].allocatable.data();
      entry.requested = nodes.extended[column->second].requested.data();
    }
    scored.push_back(entry);
  }
  const bool verbose = VLOG_IS_ON(4);
  for (size_t i = 0; i < slots.size(); ++i) {
    const Slot slot = slots[i];
    int64_t sum = 0, weights = 0;
    for (const Scored& resource : scored) {
      const int64_t allocatable = resource.allocatable[slot];
      if (allocatable == 0) continue;
      const int64_t score =
          strategy_.ScoreResource(resource.requested[slot] + resource.request, allocatable);
      if (!strategy_.Counts(score)) continue;
      sum += score * resource.weight;
      weights += resource.weight;
    }
    raw[i] = strategy_.Combine(sum, weights);
    if (verbose) {
      VLOG(4) << "NodeResourcesFit score pod=" << attempt.pod().uid()
              << " node=" << nodes.nodes[slot].name() << " weighted_sum=" << sum
              << " weights=" << weights << " score=" << raw[i];
    }
  }
  return Verdict::Success();
}

void CheckNames(const sdk::ArgsObject& args, const std::vector<std::string>& names,
                const std::string& field, bool group) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string item = absl::StrCat(field, "[", i, "]");
    if (group && names[i].find('/') != std::string::npos) {
      args.Problem(item, sdk::InvalidValue(names[i], "resource group name can't contain '/'"));
    }
    for (const std::string& error : sdk::QualifiedNameErrors(names[i])) {
      args.Problem(item, sdk::InvalidValue(names[i], error));
    }
  }
}

absl::StatusOr<std::unique_ptr<sdk::Plugin>> Create(const sdk::PluginContext& context) {
  const sdk::ArgsObject args = context.args->root();
  const std::vector<std::string> ignored = args.Strings("ignoredResources");
  const std::vector<std::string> groups = args.Strings("ignoredResourceGroups");
  CheckNames(args, ignored, "ignoredResources", /*group=*/false);
  CheckNames(args, groups, "ignoredResourceGroups", /*group=*/true);
  ScoringStrategy strategy = ScoringStrategy::Read(args);
  return std::make_unique<NodeResourcesFit>(std::set<std::string>(ignored.begin(), ignored.end()),
                                            std::set<std::string>(groups.begin(), groups.end()),
                                            std::move(strategy));
}

constexpr char kArgsSchema[] = R"({
  "type": "object", "additionalProperties": false,
  "properties": {
    "ignoredResources": {"type": "array", "items": {"type": "string"},
      "description": "Extended resources that Filter ignores."},
    "ignoredResourceGroups": {"type": "array", "items": {"type": "string"},
      "description": "Prefixes (example.com) of extended resources that Filter ignores."},
    "scoringStrategy": {"type": "object", "additionalProperties": false, "properties": {
      "type": {"enum": ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]},
      "resources": {"type": "array", "items": {"type": "object", "additionalProperties": false,
        "properties": {"name": {"type": "string"},
                       "weight": {"type": "integer", "minimum": 0, "maximum": 100}}}},
      "requestedToCapacityRatio": {"type": "object", "additionalProperties": false, "properties": {
        "shape": {"type": "array", "minItems": 1, "items": {"type": "object",
          "additionalProperties": false, "properties": {
            "utilization": {"type": "integer", "minimum": 0, "maximum": 100},
            "score": {"type": "integer", "minimum": 0, "maximum": 10}}}}}}}}
  }
})";

}  // namespace

sdk::PluginDescriptor Descriptor() {
  using Event = v1beta1::ClusterEvent;
  sdk::PluginDescriptor descriptor;
  descriptor.name = "NodeResourcesFit";
  descriptor.extension_points = {
      v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
      v1beta1::EXTENSION_POINT_PRE_SCORE, v1beta1::EXTENSION_POINT_SCORE};
  descriptor.default_weight = 1;
  descriptor.args_schema = kArgsSchema;
  descriptor.wake_up_events = {
      sdk::WakeOn("Pod", {Event::ACTION_DELETE, Event::ACTION_UPDATE_POD_SCALE_DOWN}),
      sdk::WakeOn("Node", {Event::ACTION_ADD, Event::ACTION_UPDATE_NODE_ALLOCATABLE}),
      sdk::WakeOn("DeviceClass", {Event::ACTION_ADD, Event::ACTION_UPDATE_OTHER})};
  descriptor.signature = {{"spec.containers"}};
  descriptor.maturity = sdk::Maturity::kBeta;
  descriptor.create = Create;
  sdk::RequireEarlierPoint(&descriptor, v1beta1::EXTENSION_POINT_FILTER,
                           v1beta1::EXTENSION_POINT_PRE_FILTER);
  return descriptor;
}

}  // namespace outboard::node_resources_fit
