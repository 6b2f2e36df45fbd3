// Custom resources of the API server, in a simulation.
#ifndef OUTBOARD_CLI_SIMULATE_CUSTOM_OBJECTS_H_
#define OUTBOARD_CLI_SIMULATE_CUSTOM_OBJECTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/manifests/object_reader.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/kube/objects.h"

namespace outboard::simulate {

// Converts an object of a manifest to one of `resource`, RESOURCE.VERSION.GROUP.
// Errors: the decoder's.
absl::StatusOr<kube::ClusterObjectPtr> CustomObjectOf(const std::string& resource,
                                                      const manifests::OtherObject& object);

// Executes put_object, patch_object and delete_object.
//
// Threading: thread-compatible.
// Lifetime: owns its objects.
// Errors: those of the API server.
class CustomObjects {
 public:
  // Ignores `objects` of other kinds.
  explicit CustomObjects(const std::vector<kube::ClusterObjectPtr>& objects);

  struct Outcome {
    kube::ClusterObjectPtr written;  // null: deleted
    kube::ClusterObjectPtr deleted;
    std::string version;
    std::string uid;
  };
  absl::StatusOr<Outcome> Write(const v1beta1::Effect& effect);

 private:
  absl::Status Patch(const v1beta1::PatchObject& patch, Outcome* outcome);
  absl::Status Put(const v1beta1::PutObject& put, Outcome* outcome);
  absl::Status Delete(const v1beta1::DeleteObject& del, Outcome* outcome);

  std::map<std::string, kube::ClusterObjectPtr> objects_;  // by resource and name
  int64_t version_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_CUSTOM_OBJECTS_H_
