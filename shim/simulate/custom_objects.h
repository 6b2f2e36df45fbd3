// Stands for the API server's custom resources in a simulation.
#ifndef OUTBOARD_SHIM_SIMULATE_CUSTOM_OBJECTS_H_
#define OUTBOARD_SHIM_SIMULATE_CUSTOM_OBJECTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "shim/kube/objects.h"
#include "shim/kube/wire/object_reader.h"

namespace outboard::simulate {

// A manifest's object as one of `resource`, RESOURCE.VERSION.GROUP. Errors: as the decoder's.
absl::StatusOr<kube::ClusterObjectPtr> CustomObjectOf(const std::string& resource,
                                                      const kube::OtherObject& object);

// Carries put_object, patch_object and delete_object out.
//
// Threading: thread-compatible. Lifetime: owns its objects. Errors: as the API server's.
class CustomObjects {
 public:
  // `objects` of other kinds are passed over.
  explicit CustomObjects(const std::vector<kube::ClusterObjectPtr>& objects);

  struct Outcome {
    kube::ClusterObjectPtr written;  // null: it was deleted
    kube::ClusterObjectPtr deleted;
    std::string version;
    std::string uid;
  };
  absl::StatusOr<Outcome> Write(const v1alpha1::Effect& effect);

 private:
  absl::Status Patch(const v1alpha1::PatchObject& patch, Outcome* outcome);
  absl::Status Put(const v1alpha1::PutObject& put, Outcome* outcome);
  absl::Status Delete(const v1alpha1::DeleteObject& del, Outcome* outcome);

  std::map<std::string, kube::ClusterObjectPtr> objects_;  // by resource and name
  int64_t version_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_CUSTOM_OBJECTS_H_
