// Extended resources that device classes provide: kube-scheduler's DynamicResources allocates them
// on nodes without a device plugin for them.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_DEVICE_CLASSES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_DEVICE_CLASSES_H_

#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/objects.pb.h"

namespace outboard::sdk {

// Followed by the name of a class: the resource that every class has under its own name.
inline constexpr absl::string_view kDeviceClassPrefix = "deviceclass.resource.kubernetes.io/";

// An index of device classes by the resources that they provide: the resource that they name, and
// the one under their own name. A plugin's ClusterObserver fills it.
//
// Threading: thread-compatible.
// Lifetime: a value.
// Errors: none; other objects are ignored.
class DeviceClasses {
 public:
  void Clear() { classes_.clear(); }
  // `old` is null if the object is new.
  void Change(const v1beta1::ClusterObject* old, const v1beta1::ClusterObject& object);
  void Remove(const v1beta1::ClusterObject& object);

  bool empty() const { return classes_.empty(); }
  // The class that provides a resource; null: none. Of several the first by name: kube-scheduler
  // uses the newest, but only messages depend on it.
  const std::string* ClassOf(absl::string_view resource) const;

 private:
  absl::flat_hash_map<std::string, std::set<std::string>> classes_;  // By resource.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_DEVICE_CLASSES_H_
