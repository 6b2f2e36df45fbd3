// The shim's scheduling thread without an API server: its queue, cycle and hosts, to measure.
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

// Everything between a pod that appears and its bind is the shim's own, gRPC included; binds
// succeed at once.
//
// Threading: one thread. Lifetime: the hosts must outlive it. Errors: a host that does not become
// ready, a pod that gets no node.
class SchedulingThread {
 public:
  // The configuration's profiles, with hosts at these addresses instead of its own.
  SchedulingThread(const config::Config& config, const std::vector<std::string>& addresses);
  ~SchedulingThread();

  // Before Start or after it.
  void AddNode(const kube::NodePtr& node);
  // With its place.
  void AddPod(const kube::PodPtr& pod);
  void RemovePod(const std::string& uid);
  // Connects to the hosts, gives them their configuration and the cluster, and waits for them.
  absl::Status Start();
  // The pod's whole way to its node. How long filter and score took, all hosts included, in
  // microseconds.
  absl::StatusOr<double> Schedule(const kube::PodPtr& pod);
  void AddObject(const kube::ClusterObjectPtr& object);
  // All objects that plugins may write, before Start: what pods' effects want of them is done at
  // once.
  void AddOwnObjects(const std::vector<kube::ClusterObjectPtr>& objects);
  // What it took to bind so many pods that wait, one attempt after the other.
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

// Of any number of values, of which there is at least one; 0.5: the median.
double Quantile(std::vector<double> values, double q);

}  // namespace outboard::bench

#endif  // OUTBOARD_INTEGRATION_BENCH_SCHEDULING_THREAD_H_
