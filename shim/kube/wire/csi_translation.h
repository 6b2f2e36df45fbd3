// Translates in-tree volumes to their CSI equivalents.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_CSI_TRANSLATION_H_
#define OUTBOARD_SHIM_KUBE_WIRE_CSI_TRANSLATION_H_

#include <string>

#include "outboard/v1beta1/objects.pb.h"
#include "shim/kube/wire/core_v1.pb.h"
#include "shim/kube/wire/core_v1_objects.pb.h"

namespace outboard::kube {

// Sets `migrated` of a pod's volume with an in-tree source. Sets nothing if Kubernetes could not
// translate it.
//
// Threading: pure functions.
// Errors: none.
void TranslateInlineVolume(const wire::Volume& from, const std::string& pod_namespace,
                           v1beta1::Volume* to);

// Sets `csi` and `migrated_node_affinity` of a volume with an in-tree source. Labels, claim and
// node affinity must be set already.
void TranslateVolume(const wire::PersistentVolume& from, v1beta1::PersistentVolume* to);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_CSI_TRANSLATION_H_
