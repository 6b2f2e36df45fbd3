#include "plugin_host/sdk/device_classes.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::sdk {
namespace {

std::vector<std::string> ResourcesOf(const v1beta1::DeviceClass& device_class) {
  std::vector<std::string> resources = {absl::StrCat(kDeviceClassPrefix, device_class.name())};
  if (!device_class.extended_resource_name().empty())
    resources.push_back(device_class.extended_resource_name());
  return resources;
}

}  // namespace

void DeviceClasses::Change(const v1beta1::ClusterObject* old,
                           const v1beta1::ClusterObject& object) {
  if (old != nullptr) Remove(*old);
  if (!object.has_device_class()) return;
  for (const std::string& resource : ResourcesOf(object.device_class()))
    classes_[resource].insert(object.device_class().name());
}

void DeviceClasses::Remove(const v1beta1::ClusterObject& object) {
  if (!object.has_device_class()) return;
  for (const std::string& resource : ResourcesOf(object.device_class())) {
    auto it = classes_.find(resource);
    if (it == classes_.end()) continue;
    it->second.erase(object.device_class().name());
    if (it->second.empty()) classes_.erase(it);
  }
}

const std::string* DeviceClasses::ClassOf(absl::string_view resource) const {
  const auto it = classes_.find(resource);
  return it == classes_.end() ? nullptr : &*it->second.begin();
}

}  // namespace outboard::sdk
