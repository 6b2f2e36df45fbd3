// Schedules the pods of manifests on the nodes of manifests: the same queue, cycle and host as on a
// cluster, on virtual time.
#ifndef OUTBOARD_SHIM_SIMULATE_SIMULATION_H_
#define OUTBOARD_SHIM_SIMULATE_SIMULATION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/config.h"
#include "shim/kube/objects.h"
#include "shim/simulate/report.h"

namespace outboard::simulate {

// What is simulated.
struct Scene {
  std::vector<kube::NodePtr> nodes;
  std::vector<kube::NamespacePtr> namespaces;
  // Of the kinds of objects.proto; there before nodes and pods.
  std::vector<kube::ClusterObjectPtr> objects;
  std::vector<kube::PodPtr> running;  // have a node
  std::vector<kube::PodPtr> pending;  // in the order in which they are queued
};

// Reads files into a scene, with objects of `custom_resources`; `warnings` is appended to. Pods of
// `cluster_files` without a node are queued before those of `pod_files`. Errors: INVALID_ARGUMENT
// with file, line and field; NOT_FOUND for a file that cannot be read.
absl::StatusOr<Scene> ReadScene(const std::vector<std::string>& cluster_files,
                                const std::vector<std::string>& pod_files,
                                const std::vector<config::CustomResourceRule>& custom_resources,
                                std::vector<std::string>* warnings);

// Takes every pending pod through its first attempt, in the queue's order, and hands each report to
// `sink` when the attempt ends: for a pod that waits at Permit when the wait ends. Pods that no
// attempt was made for (gated ones) come last, in the scene's order. Errors: UNAVAILABLE if
// a host cannot be reached or is lost; INVALID_ARGUMENT if the configuration does not
// suit it.
absl::Status Simulate(const Scene& scene, const config::Config& config,
                      const std::vector<std::string>& addresses, const Reporter::Sink& sink);

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_SIMULATION_H_
