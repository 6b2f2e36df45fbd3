// The shim's scheduling thread without an API server: its queue, cycle and hosts, for measurements.
#ifndef OUTBOARD_INTEGRATION_BENCH_SCHEDULING_THREAD_H_
#define OUTBOARD_INTEGRATION_BENCH_SCHEDULING_THREAD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/config.h"
#include "shim/kube/objects.h"

namespace outboard::bench {

// Everything between a pod's arrival and its bind is the shim's own, gRPC included; binds succeed
// at once.
//
// Threading: one thread.
// Lifetime: the hosts must outlive it.
// Errors: a host that is not ready in time; a pod without a node.
class SchedulingThread {
 public:
  // The configuration's profiles, with hosts at these addresses instead of its own.
  SchedulingThread(const config::Config& config, const std::vector<std::string>& addresses);
  ~SchedulingThread();

  // Before or after Start.
  void AddNode(const kube::NodePtr& node);
  // With its node.
  void AddPod(const kube::PodPtr& pod);
  void RemovePod(const std::string& uid);
  // Connects to the hosts, sends them the configuration and the cluster, and waits until they are
  // ready.
  absl::Status Start();
  // Runs the pod's whole way to its node. Returns the time of filter and score, all hosts included,
  // in microseconds.
  absl::StatusOr<double> Schedule(const kube::PodPtr& pod);
  void AddObject(const kube::ClusterObjectPtr& object);
  // All objects that plugins may write, before Start. Effects on them succeed at once.
  void AddOwnObjects(const std::vector<kube::ClusterObjectPtr>& objects);
  // The cost of binding these waiting pods, one attempt after the other.
  struct Took {
    double seconds = 0;           // of the thread, the hosts' part included
    double algorithm_micros = 0;  // of filter and score, for all pods together
    int attempts = 0;             // that found a node
  };
  absl::StatusOr<Took> ScheduleAll(int pods);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Quantile of at least one value; 0.5: the median.
double Quantile(std::vector<double> values, double q);

}  // namespace outboard::bench

#endif  // OUTBOARD_INTEGRATION_BENCH_SCHEDULING_THREAD_H_
