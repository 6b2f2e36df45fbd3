// Extended resources that device classes stand for: kube-scheduler's DynamicResources allocates
// them on nodes where no device plugin provides them.
#ifndef OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DEVICE_CLASSES_H_
#define OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DEVICE_CLASSES_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proto/outboard/v1alpha1/objects.pb.h"
#include "proto/outboard/v1alpha1/types.pb.h"

namespace outboard::dynamic_resources {

// An index of device classes by the resources that they stand for: the one that they name, and the
// one that every class has by its own name.
//
// Threading: thread-compatible. Lifetime: a value. Errors: none.
class DeviceClasses {
 public:
  struct Wanted {
    std::string resource;
    std::string device_class;  // Empty: no class stands for it.
  };

  void Clear() { classes_.clear(); }
  void Add(const v1alpha1::DeviceClass& device_class);
  void Remove(const v1alpha1::DeviceClass& device_class);

  // The extended resources that the pod asks for, if a class stands for any of them; by name. Of
  // several classes that name one resource the first by name: kube-scheduler would take the newest,
  // but only the message depends on it here.
  std::vector<Wanted> WantedBy(const v1alpha1::Pod& pod) const;

 private:
  absl::flat_hash_map<std::string, std::set<std::string>> classes_;  // By resource.
};

}  // namespace outboard::dynamic_resources

#endif  // OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DEVICE_CLASSES_H_
