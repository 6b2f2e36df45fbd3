// The API server's volumes, the volume controller and all provisioners, in a simulation.
#ifndef OUTBOARD_CLI_SIMULATE_VOLUME_CONTROLLER_H_
#define OUTBOARD_CLI_SIMULATE_VOLUME_CONTROLLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/kube/objects.h"

namespace outboard::simulate {

// Executes effects on volumes and claims. A later call does the controllers' work: it binds a claim
// and its volume, and provisions volumes, which every node can use.
//
// Threading: thread-compatible.
// Lifetime: owns its objects.
// Errors: those of the API server.
class VolumeController {
 public:
  // Objects of the input. Sets missing versions.
  explicit VolumeController(const std::vector<kube::ClusterObjectPtr>& objects);

  const std::vector<kube::ClusterObjectPtr>& objects() const { return objects_; }

  // Returns the version of the written object. Appends to `changed` what informers would report.
  absl::StatusOr<std::string> Write(const v1beta1::Effect& effect,
                                    std::vector<kube::ClusterObjectPtr>* changed);
  // The controllers' work after all writes so far.
  std::vector<kube::ClusterObjectPtr> Reconcile();

 private:
  using Objects = std::map<std::string, kube::ClusterObjectPtr>;
  absl::StatusOr<std::string> BindVolume(const v1beta1::BindVolume& bind,
                                         std::vector<kube::ClusterObjectPtr>* changed);
  absl::StatusOr<std::string> SelectNode(const v1beta1::SelectNode& select,
                                         std::vector<kube::ClusterObjectPtr>* changed);
  kube::ClusterObjectPtr MakeVolume(const v1beta1::PersistentVolumeClaim& claim);
  std::string NextVersion();

  std::vector<kube::ClusterObjectPtr> objects_;
  Objects volumes_;  // By name.
  Objects claims_;   // By `namespace/name`.
  Objects classes_;  // By name.
  std::map<std::string, std::string>
      to_bind_;  // Claims with their volumes; empty: to be provisioned.
  int64_t version_ = 0;
};

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_VOLUME_CONTROLLER_H_
