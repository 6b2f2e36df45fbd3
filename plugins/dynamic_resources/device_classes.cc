#include "plugins/dynamic_resources/device_classes.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/resources.h"

namespace outboard::dynamic_resources {
namespace {

constexpr absl::string_view kPrefix = "deviceclass.resource.kubernetes.io/";

std::vector<std::string> ResourcesOf(const v1alpha1::DeviceClass& device_class) {
  std::vector<std::string> resources = {absl::StrCat(kPrefix, device_class.name())};
  if (!device_class.extended_resource_name().empty())
    resources.push_back(device_class.extended_resource_name());
  return resources;
}

}  // namespace

void DeviceClasses::Add(const v1alpha1::DeviceClass& device_class) {
  for (const std::string& resource : ResourcesOf(device_class))
    classes_[resource].insert(device_class.name());
}

void DeviceClasses::Remove(const v1alpha1::DeviceClass& device_class) {
  for (const std::string& resource : ResourcesOf(device_class)) {
    auto it = classes_.find(resource);
    if (it == classes_.end()) continue;
    it->second.erase(device_class.name());
    if (it->second.empty()) classes_.erase(it);
  }
}

std::vector<DeviceClasses::Wanted> DeviceClasses::WantedBy(const v1alpha1::Pod& pod) const {
  std::vector<Wanted> wanted;
  if (classes_.empty()) return wanted;
  bool any = false;
  for (const auto& [resource, amount] : sdk::ComputePodRequests(pod).extended) {
    if (amount == 0) continue;
    if (!sdk::IsExtendedResourceName(resource) && !absl::StartsWith(resource, kPrefix)) continue;
    auto it = classes_.find(resource);
    any |= it != classes_.end();
    wanted.push_back({resource, it == classes_.end() ? "" : *it->second.begin()});
  }
  if (!any) wanted.clear();
  return wanted;
}

}  // namespace outboard::dynamic_resources
