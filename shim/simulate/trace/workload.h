// Makes up a cluster and the jobs of some hours on it.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_WORKLOAD_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_WORKLOAD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace outboard::simulate::trace {

struct WorkloadOptions {
  int nodes = 100;
  int gpus_per_node = 8;
  // GPU-seconds that jobs ask for, over those that there are in these hours.
  double load = 0.9;
  double hours = 24;
  // Of the load; the rest is inference.
  double training_share = 0.7;
  // Of training jobs on several GPUs of one node, those that are gangs of smaller pods.
  double small_gang_share = 0.25;
  // Training saves its work so often, in seconds; below 0: never.
  double checkpoint_seconds = 600;
  // Jobs say that they run so many times as long as they do; 0: they say nothing.
  double declared = 0;
  uint64_t seed = 1;
  std::string scheduler_name = "default-scheduler";
};

struct Workload {
  std::string cluster_yaml;
  std::string trace;  // JSON Lines
};

// The same options give the same workload, to the byte.
//
// Shapes: most training jobs ask for one GPU and most GPU time goes to large ones, up to 32 GPUs in
// gangs of 8-GPU pods; run times are log-normal with a median of 124 s for one GPU, as in Acme's
// Kalos cluster ("Characterization of Large Language Model Development in the Datacenter",
// NSDI'24), and longer for larger jobs, as in Helios and Philly. Inference services ask for 1 or 2
// GPUs, live for hours, come more often by day, and may preempt training. Errors: INVALID_ARGUMENT
// naming the flag.
absl::Status CheckWorkloadOptions(const WorkloadOptions& options);
Workload MakeWorkload(const WorkloadOptions& options);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_WORKLOAD_H_
