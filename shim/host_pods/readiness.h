// What the shim says of a host's pod, from the states of the instances in it.
#ifndef OUTBOARD_SHIM_HOST_PODS_READINESS_H_
#define OUTBOARD_SHIM_HOST_PODS_READINESS_H_

#include <optional>
#include <string>
#include <vector>

#include "shim/host_pods/host_pod.h"
#include "shim/hosts/instance_view.h"

namespace outboard::host_pods {

// What is known of one host in a pod.
struct HostInPod {
  std::string host;
  // Null: the shim has no session with an instance there.
  const hosts::InstanceView* instance = nullptr;
  // An instance there has served or was ready to.
  bool was_ready = false;
};

// The condition that the pod should have; nullopt: it has it.
//
// "True" once the instances of all hosts serve or were ready to, not necessarily at the same time;
// "False" while an instance is refused or quarantined. Other states, such as a new session after a
// restart of the shim, do not change a pod that is "True": a Deployment must not take it for a pod
// that fails. Before that, the reason says what is awaited.
//
// Pure. `hosts` is not empty.
std::optional<Readiness> WantedReadiness(const Readiness& current,
                                         const std::vector<HostInPod>& hosts);

}  // namespace outboard::host_pods

#endif  // OUTBOARD_SHIM_HOST_PODS_READINESS_H_
