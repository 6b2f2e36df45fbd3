// A pod in which instances of plugin hosts run, as far as the shim must know it.
#ifndef OUTBOARD_SHIM_HOST_PODS_HOST_POD_H_
#define OUTBOARD_SHIM_HOST_PODS_HOST_POD_H_

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "shim/informer/resources.h"

namespace outboard::host_pods {

// The readiness gate of hosts' pods: the condition that the shim sets.
inline constexpr char kReadinessGate[] = "outboard.dev/host-ready";

// The condition; an empty status means that the pod has none.
struct Readiness {
  std::string status;  // "True" or "False"
  std::string reason;
  std::string message;

  friend bool operator==(const Readiness&, const Readiness&) = default;
};

struct HostPod {
  std::string pod_namespace, name, object_uid, resource_version;
  std::string ip;          // empty: none yet
  bool has_ended = false;  // all its containers have, for good
  bool has_gate = false;   // its spec lists the readiness gate
  Readiness readiness;

  const std::string& uid() const { return object_uid; }
  std::string key() const { return absl::StrCat(pod_namespace, "/", name); }
};
using HostPodPtr = std::shared_ptr<const HostPod>;

// The pods of a namespace with these labels. In JSON: there are few.
informer::Resource<HostPod> HostPodsWith(const std::string& pod_namespace,
                                         const std::string& selector);

}  // namespace outboard::host_pods

#endif  // OUTBOARD_SHIM_HOST_PODS_HOST_POD_H_
