// Generates a cluster and some hours of jobs for it.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_WORKLOAD_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_WORKLOAD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace outboard::simulate::trace {

struct WorkloadOptions {
  int nodes = 100;
  int gpus_per_node = 8;
  // Requested GPU-seconds, as a multiple of the cluster's GPU-seconds in these hours.
  double load = 0.9;
  double hours = 24;
  // Training's share of the load; the rest is inference.
  double training_share = 0.7;
  // Share of gangs of smaller pods in training jobs on several GPUs of one node.
  double small_gang_share = 0.25;
  // Interval in seconds at which training saves its work; below 0: never.
  double checkpoint_seconds = 600;
  // Jobs declare this multiple of their run time; 0: nothing.
  double declared = 0;
  uint64_t seed = 1;
  std::string scheduler_name = "default-scheduler";
};

struct Workload {
  std::string cluster_yaml;
  std::string trace;  // JSON Lines
};

// The same options give the same workload, byte for byte.
//
// Training: most jobs request one GPU; most GPU time goes to large jobs, up to 32 GPUs in gangs of
// 8-GPU pods. Run times are log-normal. The median is 124 s for one GPU, as in Acme's Kalos cluster
// ("Characterization of Large Language Model Development in the Datacenter", NSDI'24), and longer
// for larger jobs, as in Helios and Philly. Inference services request 1 or 2 GPUs, run for hours,
// arrive more often by day, and may preempt training.
// Errors: INVALID_ARGUMENT naming the flag.
absl::Status CheckWorkloadOptions(const WorkloadOptions& options);
Workload MakeWorkload(const WorkloadOptions& options);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_WORKLOAD_H_
