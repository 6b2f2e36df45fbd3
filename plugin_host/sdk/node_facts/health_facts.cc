// What a node's status says about ill GPUs.
#include <algorithm>

#include "absl/strings/match.h"
#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::sdk {
namespace {

using Certainty = GpuProblem::Certainty;

constexpr v1beta1::ConditionStatus kTrue = v1beta1::CONDITION_STATUS_TRUE;
constexpr v1beta1::ConditionStatus kFalse = v1beta1::CONDITION_STATUS_FALSE;

struct KnownCondition {
  absl::string_view type;
  v1beta1::ConditionStatus bad;
  const char* publisher;
  Certainty certainty = Certainty::kCertain;
};
constexpr char kNvSentinel[] = "NVSentinel";
constexpr char kAks[] = "AKS";
constexpr KnownCondition kConditions[] = {
    // NVIDIA/NVSentinel: health-monitors/{gpu-health-monitor,syslog-health-monitor}. Fatal errors
    // become conditions, others become events: its docs/INTEGRATIONS.md and its runbook on events.
    {"GpuMemWatch", kTrue, kNvSentinel},
    {"GpuThermalWatch", kTrue, kNvSentinel},
    {"GpuPcieWatch", kTrue, kNvSentinel},
    {"GpuPowerWatch", kTrue, kNvSentinel},
    {"GpuNvlinkWatch", kTrue, kNvSentinel},
    {"SysLogsXIDError", kTrue, kNvSentinel},
    {"SysLogsGPUFallenOff", kTrue, kNvSentinel},
    {"NVSwitchFatalError", kTrue, kNvSentinel},
    // EKS: docs.aws.amazon.com/eks/latest/userguide/node-health.html. EKS replaces such nodes.
    {"AcceleratedHardwareReady", kFalse, "EKS"},
    // AKS: learn.microsoft.com/azure/aks/gpu-health-monitoring. Of XIDs it does not say which; a
    // link of the network that flaps is not a GPU.
    {"GPUMissing", kTrue, kAks},
    {"NVLinkStatusInactive", kTrue, kAks},
    {"XIDErrors", kTrue, kAks, Certainty::kSuspected},
    {"IBLinkFlapping", kTrue, kAks, Certainty::kSuspected},
};

const KnownCondition* FindKnown(absl::string_view type) {
  const auto* known = std::find_if(std::begin(kConditions), std::end(kConditions),
                                   [&](const KnownCondition& entry) { return entry.type == type; });
  return known == std::end(kConditions) ? nullptr : known;
}

std::optional<GpuProblem> ProblemOf(const v1beta1::Condition& condition,
                                    const std::vector<BadCondition>& own) {
  const auto problem = [&](const char* publisher, Certainty certainty) {
    return GpuProblem{
        absl::StrCat("condition ", condition.type(), "=",
                     condition.status() == kTrue ? "True" : "False", " (", publisher, ")"),
        certainty};
  };
  // An administrator's entry replaces the known one.
  const auto named = std::find_if(own.begin(), own.end(), [&](const BadCondition& bad) {
    return bad.type == condition.type();
  });
  if (named != own.end()) {
    if (named->status != condition.status()) return std::nullopt;
    return problem("nodeFacts.badConditions", Certainty::kCertain);
  }
  const KnownCondition* known = FindKnown(condition.type());
  if (known == nullptr || known->bad != condition.status()) return std::nullopt;
  return problem(known->publisher, known->certainty);
}

int64_t CountTainted(const std::vector<SliceGpu>& gpus) {
  return std::count_if(gpus.begin(), gpus.end(), [](const SliceGpu& gpu) { return gpu.tainted; });
}

}  // namespace

Fact<std::vector<GpuProblem>> ReadGpuProblems(const GpuSources& from,
                                              const std::vector<BadCondition>& conditions) {
  std::vector<GpuProblem> problems;
  for (const v1beta1::Condition& condition : from.node.conditions()) {
    if (std::optional<GpuProblem> problem = ProblemOf(condition, conditions))
      problems.push_back(*std::move(problem));
  }
  // A device plugin takes a GPU with a fatal error out of allocatable.
  bool has_capacity = false;
  for (const char* resource : {"nvidia.com/gpu", "amd.com/gpu"}) {
    const auto capacity = from.node.capacity().scalar().find(resource);
    if (capacity == from.node.capacity().scalar().end()) continue;
    has_capacity = true;
    const auto allocatable = from.node.allocatable().scalar().find(resource);
    const int64_t usable =
        allocatable == from.node.allocatable().scalar().end() ? 0 : allocatable->second;
    if (usable < capacity->second) {
      problems.push_back({absl::StrCat(capacity->second - usable, " of ", capacity->second, " ",
                                       resource, " not allocatable")});
    }
  }
  if (from.slices != nullptr) {
    if (const int64_t tainted = CountTainted(*from.slices); tainted > 0) {
      problems.push_back({absl::StrCat(tainted, " of ", from.slices->size(), " devices tainted")});
    }
  }
  const std::string* health = from.labels.Text(node_labels::kHyperPodHealth);
  if (health != nullptr && *health != node_labels::kHyperPodGood) {
    problems.push_back(
        {absl::StrCat("label ", node_labels::kHyperPodHealth, "=", *health, " (HyperPod)"),
         absl::StartsWith(*health, node_labels::kHyperPodBad) ? Certainty::kCertain
                                                              : Certainty::kSuspected});
  }
  // Without conditions and capacity nothing was looked at: the plugin did not declare them.
  if (problems.empty() && !has_capacity && from.node.conditions().empty()) return {};
  return MakeFact(std::move(problems), FactSource::kCluster, "status of the node");
}

Fact<int64_t> ReadTaintedGpus(const GpuSources& from) {
  if (from.slices == nullptr) return {};
  return MakeFact(CountTainted(*from.slices), FactSource::kResourceSlice, kSliceOrigin);
}

}  // namespace outboard::sdk
