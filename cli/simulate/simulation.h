// Schedules pods from manifests on nodes from manifests: the same queue, cycle and host as on a
// cluster, on virtual time.
#ifndef OUTBOARD_CLI_SIMULATE_SIMULATION_H_
#define OUTBOARD_CLI_SIMULATE_SIMULATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/manifests/priorities.h"
#include "cli/simulate/report.h"
#include "shim/config/config.h"
#include "shim/kube/objects.h"

namespace outboard::simulate {

// The objects of a simulation.
struct SimulationInput {
  std::vector<kube::NodePtr> nodes;
  std::vector<kube::NamespacePtr> namespaces;
  // Kinds of objects.proto; they exist before nodes and pods.
  std::vector<kube::ClusterObjectPtr> objects;
  manifests::PriorityClasses priority_classes;
  std::vector<kube::PodPtr> running;  // have a node
  std::vector<kube::PodPtr> pending;  // in queueing order
};

// Reads the input from files, directories and standard input, with objects of `custom_resources`.
// Appends to `warnings`. Queues pods without a node from `cluster_files` before those from
// `pod_files`. `strict`: unknown fields are errors.
// Errors: INVALID_ARGUMENT with all mistakes of all files.
absl::StatusOr<SimulationInput> ReadScene(
    const std::vector<std::string>& cluster_files, const std::vector<std::string>& pod_files,
    const std::vector<config::CustomResourceRule>& custom_resources, bool strict,
    std::vector<std::string>* warnings);

// Makes the first attempt at every pending pod, in the queue's order. Calls `sink` with each report
// when the attempt ends; for a pod that waits at Permit, when the wait ends. Pods without an
// attempt (gated ones) come last, in the input's order.
// Errors: UNAVAILABLE if a host cannot be reached or is lost; INVALID_ARGUMENT if it rejects the
// configuration.
absl::Status Simulate(const SimulationInput& scene, const config::Config& config,
                      const std::vector<std::string>& addresses, const Reporter::Sink& sink);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_SIMULATION_H_
