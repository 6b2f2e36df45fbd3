// The kind of a pod's workload.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_
#define OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_

#include <memory>
#include <string>
#include <vector>

#include "outboard/v1beta1/types.pb.h"
#include "plugin_host/sdk/args_reader.h"

namespace outboard::workloads {
struct WorkloadRules;
}  // namespace outboard::workloads

namespace outboard::sdk {

enum class WorkloadType { kOther, kTraining, kInference };

inline constexpr char kWorkloadTypeLabel[] = "workload-type";

// What TypeOf reads, for PluginDescriptor::signature.
std::vector<std::string> WorkloadTypeParts();
// The labels among these.
std::vector<std::string> WorkloadTypeLabels();

// Part of a JSON schema: the arguments `training` and `inference`.
std::string WorkloadTypesSchema();

// The shim's metrics recognise pods by the same rules (proto/workloads), without arguments.
//
// Threading: immutable after Read.
// Lifetime: a value.
// Errors: problems in the reader of args.
class WorkloadTypes {
 public:
  // The arguments `training` and `inference`.
  static WorkloadTypes Read(const ArgsObject& root);

  // The label's value if present (anything but training and inference: other). Otherwise the labels
  // of known controllers and the owner's kind, then the images of its containers; other if these
  // match both or none.
  WorkloadType TypeOf(const v1beta1::Pod& pod) const;

 private:
  std::shared_ptr<const workloads::WorkloadRules> rules_;  // Null: the default ones.
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_WORKLOAD_TYPE_H_
