// The pod labels by which metrics of AI workloads are broken down.
#ifndef OUTBOARD_SHIM_CONFIG_WORKLOAD_LABELS_H_
#define OUTBOARD_SHIM_CONFIG_WORKLOAD_LABELS_H_

#include <string>
#include <vector>

namespace outboard::config {

// `metrics` of the ShimConfiguration.
struct WorkloadLabels {
  // Of pods without it, and of all if empty, the type is recognised (proto/workloads).
  std::string type_label = "workload-type";
  // Values that are counted by themselves, in any case; all others count as `other`.
  std::vector<std::string> types = {"training", "inference", "batch", "CPU-intensive",
                                    "GPU-intensive"};
  // The first of these that a pod has names its group, if it names none in a known dialect.
  std::vector<std::string> job_labels = {"job-name", "batch.kubernetes.io/job-name",
                                         "scheduling.x-k8s.io/pod-group", "training-job-id"};
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_WORKLOAD_LABELS_H_
