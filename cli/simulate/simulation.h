// Schedules pods from manifests on nodes from manifests: the same queue, cycle and host as on a
// cluster, on virtual time.
#ifndef OUTBOARD_CLI_SIMULATE_SIMULATION_H_
#define OUTBOARD_CLI_SIMULATE_SIMULATION_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/manifests/priorities.h"
#include "cli/simulate/report.h"
#include "shim/config/config.h"
#include "shim/kube/objects.h"

namespace outboard::simulate {

// A pod that was to be scheduled and needs no node of this scheduler.
struct SkippedPod {
  kube::PodPtr pod;
  std::string why;
};

// The objects of a simulation.
struct SimulationInput {
  std::vector<kube::NodePtr> nodes;
  std::vector<kube::NamespacePtr> namespaces;
  // Kinds of objects.proto; they exist before nodes and pods.
  std::vector<kube::ClusterObjectPtr> objects;
  manifests::PriorityClasses priority_classes;
  std::vector<kube::PodPtr> running;  // have a node
  std::vector<kube::PodPtr> pending;  // in queueing order
  std::vector<SkippedPod> skipped;
};

// Reads the input from files, directories and standard input, with objects of `custom_resources`.
// Appends to `warnings`. Queues pods without a node from `cluster_files` before those from
// `pod_files`. Pods from `pod_files` that have a node or have ended are skipped. `strict`: unknown
// fields are errors.
// Errors: INVALID_ARGUMENT with all mistakes of all files.
absl::StatusOr<SimulationInput> ReadScene(
    const std::vector<std::string>& cluster_files, const std::vector<std::string>& pod_files,
    const std::vector<config::CustomResourceRule>& custom_resources, bool strict,
    std::vector<std::string>* warnings);

// Sends all pending pods to one profile.
void SetSchedulerName(const std::string& name, SimulationInput* scene);

struct SimulationOptions {
  // Unschedulable pods are tried again until nothing changes; otherwise each pod is tried once.
  bool until_settled = false;
};

// How a simulation ended.
struct SimulationEnd {
  size_t attempts = 0;
  absl::Duration time = absl::ZeroDuration();  // virtual, since it began
  // Pods that are still tried again, without success so far.
  std::vector<std::string> restless;
  bool gave_up = false;  // it had not settled after too many attempts
};

// Makes the first attempt at every pending pod, in the queue's order, and with `until_settled` all
// others too. Calls `sink` with each report when the attempt ends; for a pod that waits at Permit,
// when the wait ends. Pods without an attempt (gated or skipped ones) come last, in the input's
// order.
// Errors: UNAVAILABLE if a host cannot be reached or is lost; INVALID_ARGUMENT if it rejects the
// configuration.
absl::StatusOr<SimulationEnd> Simulate(const SimulationInput& scene, const config::Config& config,
                                       const std::vector<std::string>& addresses,
                                       const SimulationOptions& options,
                                       const Reporter::Sink& sink);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_SIMULATION_H_
