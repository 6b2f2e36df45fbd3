// Extended resources that device classes stand for.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_CLASS_RESOURCES_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_CLASS_RESOURCES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/outboard/v1alpha1/objects.pb.h"

namespace outboard::node_resources_fit {

// The resource that a class names, and the one that it has by its own name. Of a node that has none
// of such a resource DynamicResources judges.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
class ClassResources {
 public:
  void Clear() { classes_.clear(); }
  void Add(const v1alpha1::DeviceClass& device_class) {
    ++classes_[OwnResource(device_class)];
    if (!device_class.extended_resource_name().empty())
      ++classes_[device_class.extended_resource_name()];
  }
  void Remove(const v1alpha1::DeviceClass& device_class) {
    Drop(OwnResource(device_class));
    if (!device_class.extended_resource_name().empty()) Drop(device_class.extended_resource_name());
  }
  bool Contains(absl::string_view resource) const { return classes_.contains(resource); }

 private:
  static std::string OwnResource(const v1alpha1::DeviceClass& device_class) {
    return absl::StrCat("deviceclass.resource.kubernetes.io/", device_class.name());
  }
  void Drop(const std::string& resource) {
    const auto it = classes_.find(resource);
    if (it != classes_.end() && --it->second == 0) classes_.erase(it);
  }

  absl::flat_hash_map<std::string, int> classes_;  // By resource: how many.
};

}  // namespace outboard::node_resources_fit

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_CLASS_RESOURCES_H_
