// The type of a pod's workload, without the label by which users name it.
#ifndef OUTBOARD_PROTO_WORKLOADS_WORKLOAD_TYPE_H_
#define OUTBOARD_PROTO_WORKLOADS_WORKLOAD_TYPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"

namespace outboard::workloads {

enum class WorkloadType { kNone, kTraining, kInference, kBatch, kService, kInteractive };
inline constexpr WorkloadType kWorkloadTypes[] = {
    WorkloadType::kNone,  WorkloadType::kTraining, WorkloadType::kInference,
    WorkloadType::kBatch, WorkloadType::kService,  WorkloadType::kInteractive};
// `none`, `training`, `inference`, `batch`, `service`, `interactive`.
absl::string_view WorkloadTypeName(WorkloadType type);

// Properties of pods that mean training, or inference.
struct WorkloadTraits {
  std::vector<std::string> owner_kinds;  // of the pod's controller, as Kubernetes writes them
  std::vector<std::string> images;       // parts of images' names, in lower case
};

struct WorkloadRules {
  WorkloadTraits training, inference;
};
const WorkloadRules& DefaultWorkloadRules();

// The type by the pod's labels (WorkloadLabels), its controller's kind, commands and images; see
// README.md for the order.
WorkloadType RecognizeWorkload(const v1beta1::Pod& pod, const WorkloadRules& rules);

// The labels that RecognizeWorkload reads.
std::vector<std::string> WorkloadLabels();

// An image's name without registry, tag and digest, in lower case.
std::string ImageName(absl::string_view image);

}  // namespace outboard::workloads

#endif  // OUTBOARD_PROTO_WORKLOADS_WORKLOAD_TYPE_H_
