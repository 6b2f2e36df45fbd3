// Priorities from classes, as the API server's admission plugin Priority computes them.
//
// What differs, because manifests also contain pods that a cluster has admitted, and pods for which
// no class is written: `spec.priority` alone is taken, also beside the name of a class
// that the manifests do not contain; and it is not compared with the class where the pod has a
// resourceVersion.
//
// Threading: thread-compatible.
#ifndef OUTBOARD_CLI_MANIFESTS_PRIORITIES_H_
#define OUTBOARD_CLI_MANIFESTS_PRIORITIES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/document.h"
#include "shim/kube/wire/scheduling_v1.pb.h"

namespace outboard::manifests {

constexpr int32_t kHighestUserPriority = 1000000000;

// Why a class with the prefix `system-` is not one of Kubernetes' own, or "".
std::string CheckSystemClass(const kube::wire::PriorityClass& priority_class);

class PriorityClasses {
 public:
  // Contains Kubernetes' own classes.
  PriorityClasses();

  // Returns the fault of a second default class.
  std::optional<kube::Fault> Add(const kube::wire::PriorityClass& priority_class);
  // Fills in class, priority and preemption policy of a pod, or returns the admission's fault.
  std::optional<kube::Fault> Resolve(kube::wire::Pod* pod) const;

 private:
  struct Class {
    int32_t value;
    std::string preemption_policy;
  };
  std::map<std::string, Class> classes_;
  std::string default_;
};

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_PRIORITIES_H_
