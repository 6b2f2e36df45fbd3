// What a node's status says about ill GPUs.
#include <algorithm>

#include "plugin_host/sdk/node_facts/fact_readers.h"
#include "plugin_host/sdk/node_facts/node_labels.h"

namespace outboard::sdk {
namespace {

constexpr v1beta1::ConditionStatus kTrue = v1beta1::CONDITION_STATUS_TRUE;
constexpr v1beta1::ConditionStatus kFalse = v1beta1::CONDITION_STATUS_FALSE;

struct KnownCondition {
  absl::string_view type;
  v1beta1::ConditionStatus bad;
};
constexpr KnownCondition kConditions[] = {
    // NVIDIA/NVSentinel: health-monitors/{gpu-health-monitor,syslog-health-monitor}.
    {"GpuMemWatch", kTrue},
    {"GpuThermalWatch", kTrue},
    {"GpuPcieWatch", kTrue},
    {"GpuPowerWatch", kTrue},
    {"GpuNvlinkWatch", kTrue},
    {"SysLogsXIDError", kTrue},
    {"SysLogsGPUFallenOff", kTrue},
    {"NVSwitchFatalError", kTrue},
    // EKS: docs.aws.amazon.com/eks/latest/userguide/node-health.html.
    {"AcceleratedHardwareReady", kFalse},
    // AKS: learn.microsoft.com/azure/aks/gpu-health-monitoring.
    {"GPUMissing", kTrue},
    {"NVLinkStatusInactive", kTrue},
    {"XIDErrors", kTrue},
    {"IBLinkFlapping", kTrue},
};

bool IsBad(const v1beta1::Condition& condition, const std::vector<BadCondition>& own) {
  // An administrator's entry replaces the known one.
  const auto named = std::find_if(own.begin(), own.end(), [&](const BadCondition& bad) {
    return bad.type == condition.type();
  });
  if (named != own.end()) return named->status == condition.status();
  for (const KnownCondition& known : kConditions) {
    if (known.type == condition.type()) return known.bad == condition.status();
  }
  return false;
}

}  // namespace

Fact<std::vector<std::string>> ReadGpuProblems(const GpuSources& from,
                                               const std::vector<BadCondition>& conditions) {
  std::vector<std::string> problems;
  for (const v1beta1::Condition& condition : from.node.conditions()) {
    if (!IsBad(condition, conditions)) continue;
    problems.push_back(absl::StrCat("condition ", condition.type(), "=",
                                    condition.status() == kTrue ? "True" : "False"));
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
      problems.push_back(absl::StrCat(capacity->second - usable, " of ", capacity->second, " ",
                                      resource, " not allocatable"));
    }
  }
  if (from.slices != nullptr) {
    const auto tainted = std::count_if(from.slices->begin(), from.slices->end(),
                                       [](const SliceGpu& gpu) { return gpu.tainted; });
    if (tainted > 0)
      problems.push_back(absl::StrCat(tainted, " of ", from.slices->size(), " devices tainted"));
  }
  const std::string* health = from.labels.Text(node_labels::kHyperPodHealth);
  if (health != nullptr && *health != node_labels::kHyperPodGood)
    problems.push_back(absl::StrCat("label ", node_labels::kHyperPodHealth, "=", *health));
  // Without conditions and capacity nothing was looked at: the plugin did not declare them.
  if (problems.empty() && !has_capacity && from.node.conditions().empty()) return {};
  return MakeFact(std::move(problems), FactSource::kCluster, "status of the node");
}

}  // namespace outboard::sdk
