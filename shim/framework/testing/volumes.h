// Volumes and claims for tests of effects.
#ifndef OUTBOARD_SHIM_FRAMEWORK_TESTING_VOLUMES_H_
#define OUTBOARD_SHIM_FRAMEWORK_TESTING_VOLUMES_H_

#include <memory>
#include <string>

#include "shim/kube/objects.h"

namespace outboard::framework::testing {

inline constexpr char kDelayedClass[] = "delayed";

// A class whose volumes are made by a driver for the claim's first pod.
inline std::shared_ptr<kube::ClusterObject> DelayedClass() {
  auto object = std::make_shared<kube::ClusterObject>();
  object->object_uid = "uid-delayed";
  object->resource_version = "1";
  v1beta1::StorageClass* const made = object->object.mutable_storage_class();
  made->set_name(kDelayedClass);
  made->set_provisioner("csi.example.com");
  made->set_volume_binding_mode("WaitForFirstConsumer");
  return object;
}

// A claim of 10 bytes that waits for its first pod.
inline std::shared_ptr<kube::ClusterObject> WaitingClaim(const std::string& name_space,
                                                         const std::string& name,
                                                         const std::string& uid,
                                                         const std::string& version) {
  auto object = std::make_shared<kube::ClusterObject>();
  object->object_uid = uid;
  object->resource_version = version;
  v1beta1::PersistentVolumeClaim* const made = object->object.mutable_persistent_volume_claim();
  made->set_namespace_(name_space);
  made->set_name(name);
  made->set_uid(uid);
  made->set_resource_version(version);
  made->set_request_bytes(10);
  made->add_access_modes("ReadWriteOnce");
  made->set_storage_class_name(kDelayedClass);
  made->set_phase("Pending");
  return object;
}

// A volume of 10 bytes that no claim has.
inline std::shared_ptr<kube::ClusterObject> FreeVolume(const std::string& name,
                                                       const std::string& uid,
                                                       const std::string& version) {
  auto object = std::make_shared<kube::ClusterObject>();
  object->object_uid = uid;
  object->resource_version = version;
  v1beta1::PersistentVolume* const made = object->object.mutable_persistent_volume();
  made->set_name(name);
  made->set_uid(uid);
  made->set_resource_version(version);
  made->set_capacity_bytes(10);
  made->add_access_modes("ReadWriteOnce");
  made->set_storage_class_name(kDelayedClass);
  made->set_phase("Available");
  return object;
}

}  // namespace outboard::framework::testing

#endif  // OUTBOARD_SHIM_FRAMEWORK_TESTING_VOLUMES_H_
