#include "plugins/gpu_packing/gpu_demand.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/gpu_devices.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::gpu_packing {
namespace {

constexpr int64_t kMaxMemoryMib = int64_t{1} << 30;

std::string ResourceName(const sdk::ArgsObject& object, absl::string_view key,
                         absl::string_view default_name) {
  std::string name = object.String(key, default_name);
  if (!sdk::IsExtendedResourceName(name))
    object.Problem(key, sdk::InvalidValue(name, "must be the name of an extended resource"));
  return name;
}

}  // namespace

std::optional<int32_t> ParseFraction(absl::string_view text) {
  const std::optional<double> fraction = sdk::ParseAmount(text, 1);
  if (!fraction || *fraction <= 0) return std::nullopt;
  // 0.29 becomes 290, although 0.29 * 1000 is slightly more.
  const auto milli = static_cast<int32_t>(std::ceil(*fraction * kWholeGpu - 1e-6));
  return std::clamp(milli, 1, kWholeGpu);
}

std::optional<std::vector<std::string>> ParseAllocatedDevices(absl::string_view text) {
  const std::optional<std::vector<sdk::HamiDevice>> allocated = sdk::ParseHamiDevices(text);
  if (!allocated) return std::nullopt;
  std::vector<std::string> devices;
  for (const sdk::HamiDevice& device : *allocated) {
    // Containers of one pod may share a GPU.
    if (std::find(devices.begin(), devices.end(), device.uuid) == devices.end())
      devices.push_back(device.uuid);
    if (devices.size() > kMaxGpus) return std::nullopt;
  }
  return devices;
}

GpuDemandReader GpuDemandReader::Read(const sdk::ArgsObject& root) {
  GpuDemandReader reader;
  reader.gpus_ = sdk::GpuResources::Read(root);
  const sdk::ArgsObject sharing = root.Object("sharing");
  reader.memory_resource_ = ResourceName(sharing, "memoryResource", "nvidia.com/gpumem");
  reader.memory_percentage_resource_ =
      ResourceName(sharing, "memoryPercentageResource", "nvidia.com/gpumem-percentage");
  reader.cores_resource_ = ResourceName(sharing, "coresResource", "nvidia.com/gpucores");
  reader.reservation_namespace_ =
      sharing.String("reservationNamespace", "kai-resource-reservation");
  return reader;
}

PodGpus GpuDemandReader::Demand(const v1beta1::Pod& pod, const sdk::Resources& requests,
                                sdk::MalformedValues* malformed,
                                std::set<std::string>* claims) const {
  PodGpus wanted;
  int64_t whole = gpus_.claims().DemandOf(pod, claims);
  if (whole == 0 && requests.extended.empty() && pod.annotations().empty()) return wanted;
  int64_t memory = 0, percent = 0;
  // Usually one name, which is an extended resource.
  for (const auto& [name, amount] : requests.extended) {
    const std::vector<std::string>& gpus = gpus_.names();
    if (std::find(gpus.begin(), gpus.end(), name) != gpus.end())
      whole += std::clamp<int64_t>(amount, 0, kMaxGpus + 1);
    if (name == memory_resource_) memory = std::clamp<int64_t>(amount, 0, kMaxMemoryMib);
    if (name == memory_percentage_resource_ || name == cores_resource_)
      percent = std::max(percent, std::clamp<int64_t>(amount, 0, 100));
  }
  if (memory > 0 || percent > 0) {
    wanted.gpus = static_cast<int32_t>(std::clamp<int64_t>(whole, 1, kMaxGpus + 1));
    wanted.milli = static_cast<int32_t>(percent * 10);
    wanted.memory_mib = memory;
    return wanted;
  }
  if (whole > 0) {
    wanted.gpus = static_cast<int32_t>(std::min<int64_t>(whole, kMaxGpus + 1));
    wanted.milli = kWholeGpu;
    wanted.holds_only = pod.namespace_() == reservation_namespace_ &&
                        sdk::FindValue(pod.labels(), kGroupLabel) != nullptr;
    return wanted;
  }
  if (pod.annotations().empty()) return wanted;
  const auto warn = [&](const char* key, const std::string& value, const char* what) {
    malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()), key, value, what);
  };
  if (const std::string* text = sdk::FindValue(pod.annotations(), kFractionAnnotation)) {
    if (const std::optional<int32_t> milli = ParseFraction(*text)) {
      wanted.milli = *milli;
    } else {
      warn(kFractionAnnotation, *text, "a number above 0 and at most 1");
    }
  }
  if (const std::string* text = sdk::FindValue(pod.annotations(), kMemoryAnnotation)) {
    const std::optional<int64_t> mib = sdk::ParseCount(*text, kMaxMemoryMib);
    if (mib && *mib > 0) {
      wanted.memory_mib = *mib;
    } else {
      warn(kMemoryAnnotation, *text, "a number of MiB above 0");
    }
  }
  if (wanted.milli == 0 && wanted.memory_mib == 0) return wanted;
  wanted.gpus = 1;
  wanted.annotated = true;
  if (const std::string* text = sdk::FindValue(pod.annotations(), kDevicesAnnotation)) {
    const std::optional<int64_t> count = sdk::ParseCount(*text, kMaxGpus);
    if (count && *count > 0) {
      wanted.gpus = static_cast<int32_t>(*count);
    } else {
      warn(kDevicesAnnotation, *text, "a number of GPUs between 1 and 128");
    }
  }
  return wanted;
}

std::vector<std::string> GpuDemandReader::Devices(const v1beta1::Pod& pod,
                                                  sdk::MalformedValues* malformed) const {
  if (!pod.annotations().empty()) {
    if (const std::string* text = sdk::FindValue(pod.annotations(), sdk::kHamiDevicesAnnotation)) {
      if (std::optional<std::vector<std::string>> devices = ParseAllocatedDevices(*text))
        return *std::move(devices);
      malformed->Warn(absl::StrCat("pod ", pod.namespace_(), "/", pod.name()),
                      sdk::kHamiDevicesAnnotation, *text, "a list of GPUs");
    }
  }
  std::vector<std::string> devices;
  if (const std::string* group = sdk::FindValue(pod.labels(), kGroupLabel)) {
    if (!group->empty()) devices.push_back(*group);
  }
  if (!devices.empty()) return devices;
  // A pod on several shared GPUs has a label for each, whose key ends in the group.
  for (const auto& [key, value] : pod.labels()) {
    absl::string_view group = key;
    if (absl::ConsumePrefix(&group, kGroupLabel) && absl::ConsumePrefix(&group, "/"))
      devices.emplace_back(group);
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

}  // namespace outboard::gpu_packing
