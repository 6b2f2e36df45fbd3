// Queueing hints: which events may let the volumes of a pod be bound.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_HINTS_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_HINTS_H_

#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::volume_binding {

// kube-scheduler's hints (v1.36). Nodes and PersistentVolumes always help. Only claims and drivers
// are compared with the pod's. Pure.
sdk::Hint HintOf(const v1beta1::Pod& pod, const sdk::ObjectChange& change);

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_HINTS_H_
