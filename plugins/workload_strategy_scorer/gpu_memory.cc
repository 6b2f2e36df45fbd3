#include "plugins/workload_strategy_scorer/gpu_memory.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/resources.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::workload_strategy_scorer {
namespace {

constexpr double kMibPerGb = 1024;
// Far above any real pod or node; keeps sums within the exact range of a double.
constexpr double kMaxGb = 1e9;
constexpr int64_t kMaxGpus = 4096;

struct Unit {
  const char* name;
  double mib;
};
constexpr Unit kUnits[] = {{"B", 1.0 / 1024 / 1024}, {"MiB", 1}, {"GiB", 1024}};

// HAMi; Volcano; Alibaba's gpushare; Koordinator.
std::vector<MemoryResource> DefaultResources() {
  return {{"nvidia.com/gpumem", 1, true},
          {"volcano.sh/gpu-memory", 1, false},
          {"aliyun.com/gpu-mem", 1024, false},
          {"koordinator.sh/gpu-memory", 1.0 / 1024 / 1024, false}};
}

MemoryResource ReadResource(const sdk::ArgsObject& args) {
  MemoryResource resource;
  resource.name = args.String("name", "");
  if (resource.name.empty()) {
    args.Problem("name", sdk::RequiredValue("a resource must be named"));
  } else if (!sdk::IsExtendedResourceName(resource.name)) {
    args.Problem("name",
                 sdk::InvalidValue(resource.name, "must be the name of an extended resource"));
  }
  const std::string wanted = args.String("unit", "MiB");
  const Unit* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const Unit& known) { return wanted == known.name; });
  if (unit == std::end(kUnits)) {
    args.Problem("unit", sdk::NotSupported(wanted, {"B", "MiB", "GiB"}));
  } else {
    resource.mib = unit->mib;
  }
  resource.per_gpu = args.Bool("perGPU", false);
  return resource;
}

// The sum of HAMi's annotation; nullopt if it is malformed.
std::optional<double> HamiMemory(const std::string& text) {
  const std::optional<std::vector<sdk::HamiDevice>> devices = sdk::ParseHamiDevices(text);
  if (!devices) return std::nullopt;
  double sum = 0;
  for (const sdk::HamiDevice& device : *devices) {
    if (!device.mib) return std::nullopt;
    sum += static_cast<double>(*device.mib);
  }
  return std::min(sum, kMaxGb * kMibPerGb);
}

}  // namespace

const char kGpuMemoryResourcesSchema[] =
    R"json("gpuMemoryResources": {"type": "array", "items": {"type": "object", "additionalProperties": false,
      "required": ["name"], "properties": {
        "name": {"type": "string", "description": "An extended resource."},
        "unit": {"enum": ["B", "MiB", "GiB"], "default": "MiB", "description": "Unit of the resource."},
        "perGPU": {"type": "boolean", "default": false, "description": "The request is per GPU."}}},
      "description": "Extended resources that are GPU memory; replaces HAMi's, Volcano's, Alibaba's and Koordinator's."})json";

GpuMemory GpuMemory::Read(const sdk::ArgsObject& root) {
  GpuMemory memory;
  memory.gpus_ = sdk::GpuResources::Read(root);
  if (!root.Has("gpuMemoryResources")) {
    memory.resources_ = DefaultResources();
    return memory;
  }
  for (const sdk::ArgsObject& args : root.Objects("gpuMemoryResources"))
    memory.resources_.push_back(ReadResource(args));
  return memory;
}

MemoryDemand GpuMemory::DemandOf(const v1beta1::Pod& pod, sdk::MalformedValues* malformed) const {
  const auto warn = [&](const char* key, const std::string& value, const char* wanted) {
    if (malformed == nullptr) return;
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, value, wanted);
  };
  if (const std::string* text = sdk::FindValue(pod.annotations(), kMemoryAnnotation)) {
    if (const auto gb = sdk::ParseAmount(*text, kMaxGb)) return {*gb * kMibPerGb, 0};
    warn(kMemoryAnnotation, *text, "a number of GB");
  }
  if (const std::string* text = sdk::FindValue(pod.annotations(), kKaiMemoryAnnotation)) {
    double devices = 1;
    if (const std::string* count = sdk::FindValue(pod.annotations(), kKaiDevicesAnnotation)) {
      const auto parsed = sdk::ParseCount(*count, kMaxGpus);
      if (parsed) devices = static_cast<double>(*parsed);
      if (!parsed) warn(kKaiDevicesAnnotation, *count, "a number of GPUs");
    }
    if (const auto mib = sdk::ParseAmount(*text, kMaxGb * kMibPerGb)) return {*mib * devices, 0};
    warn(kKaiMemoryAnnotation, *text, "a number of MiB");
  }
  const sdk::Resources requests = sdk::ComputePodRequests(pod);
  int64_t gpus = 0;
  for (const std::string& name : gpus_.names())
    gpus += std::clamp<int64_t>(requests.Get(name), 0, kMaxGpus);
  gpus += gpus_.claims().DemandOf(pod);
  double mib = 0;
  for (const MemoryResource& resource : resources_) {
    const double amount = static_cast<double>(std::max<int64_t>(0, requests.Get(resource.name)));
    mib += amount * resource.mib *
           (resource.per_gpu ? static_cast<double>(std::max<int64_t>(1, gpus)) : 1);
  }
  if (mib > 0) return {std::min(mib, kMaxGb * kMibPerGb), 0};
  return {0, gpus};
}

MemoryDemand GpuMemory::UseOf(const v1beta1::Pod& pod, const std::optional<sdk::GpuSet>& devices,
                              sdk::MalformedValues* malformed) const {
  if (const std::string* text = sdk::FindValue(pod.annotations(), sdk::kHamiDevicesAnnotation)) {
    const std::optional<double> mib = HamiMemory(*text);
    if (mib) return {*mib, 0};
    if (malformed != nullptr) {
      malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()),
                      sdk::kHamiDevicesAnnotation, *text, "a list of GPUs with their memory");
    }
  }
  MemoryDemand use = DemandOf(pod, malformed);
  if (use.mib == 0 && devices) use.whole_gpus = std::popcount(*devices);
  return use;
}

NodeMemory NodeMemoryOf(const sdk::NodeFacts& facts) {
  NodeMemory memory;
  if (facts.memory_gb.known() && *facts.memory_gb.value > 0)
    memory.mib_per_gpu = *facts.memory_gb.value * kMibPerGb;
  // What is concluded from resources is about the wrong ones if args name others.
  if (facts.gpus.source != sdk::FactSource::kConclusion) memory.gpus = facts.gpus.value;
  return memory;
}

}  // namespace outboard::workload_strategy_scorer
