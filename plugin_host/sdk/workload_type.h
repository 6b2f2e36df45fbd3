// The kind of a pod's workload.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"

namespace outboard::sdk {

enum class WorkloadType { kOther, kTraining, kInference };

inline constexpr char kWorkloadTypeLabel[] = "workload-type";

// Properties that classify pods without the label.
struct WorkloadTraits {
  std::vector<std::string> owner_kinds;  // Of the pod's controller, as Kubernetes writes them.
  std::vector<std::string> images;       // Parts of images' names, in lower case.
};

// An image's name without registry, tag and digest, in lower case.
std::string ImageName(absl::string_view image);

// Part of a JSON schema: the arguments `training` and `inference`.
std::string WorkloadTypesSchema();

// Threading: immutable after Read.
// Lifetime: a value.
// Errors: problems in the reader of args.
class WorkloadTypes {
 public:
  // The arguments `training` and `inference`.
  static WorkloadTypes Read(const ArgsObject& root);

  // The label's value if present (anything but training and inference: other). Otherwise the
  // owner's kind, then the images of its containers; other if these match both or none.
  WorkloadType TypeOf(const v1beta1::Pod& pod) const;

 private:
  WorkloadTraits training_;
  WorkloadTraits inference_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_
