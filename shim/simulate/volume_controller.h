// Stands for the API server, the volume controller and every provisioner in a simulation.
#ifndef OUTBOARD_SHIM_SIMULATE_VOLUME_CONTROLLER_H_
#define OUTBOARD_SHIM_SIMULATE_VOLUME_CONTROLLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/effect.pb.h"
#include "shim/kube/objects.h"

namespace outboard::simulate {

// Carries effects on volumes and claims out, and later, when it is told to, does what follows from
// them: the claim and its volume are bound, a volume that was asked for is made and reaches every
// node.
//
// Threading: thread-compatible. Lifetime: owns its objects. Errors: as the API server's.
class VolumeController {
 public:
  // Objects of the scene; those without a version get one.
  explicit VolumeController(const std::vector<kube::ClusterObjectPtr>& objects);

  const std::vector<kube::ClusterObjectPtr>& objects() const { return objects_; }

  // The version of the object that was written; `changed` receives what informers would tell.
  absl::StatusOr<std::string> Write(const v1alpha1::Effect& effect,
                                    std::vector<kube::ClusterObjectPtr>* changed);
  // What follows from all writes so far.
  std::vector<kube::ClusterObjectPtr> Reconcile();

 private:
  using Objects = std::map<std::string, kube::ClusterObjectPtr>;
  absl::StatusOr<std::string> BindVolume(const v1alpha1::BindVolume& bind,
                                         std::vector<kube::ClusterObjectPtr>* changed);
  absl::StatusOr<std::string> SelectNode(const v1alpha1::SelectNode& select,
                                         std::vector<kube::ClusterObjectPtr>* changed);
  kube::ClusterObjectPtr MakeVolume(const v1alpha1::PersistentVolumeClaim& claim);
  std::string NextVersion();

  std::vector<kube::ClusterObjectPtr> objects_;
  Objects volumes_;                             // By name.
  Objects claims_;                              // By `namespace/name`.
  Objects classes_;                             // By name.
  std::map<std::string, std::string> to_bind_;  // Claims with their volumes; empty: to be made.
  int64_t version_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_VOLUME_CONTROLLER_H_
