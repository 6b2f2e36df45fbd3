// Queueing hints: which events may make room for a pod that did not fit.
#ifndef OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_HINTS_H_
#define OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_HINTS_H_

#include "plugin_host/sdk/device_classes.h"
#include "plugin_host/sdk/queueing_hint.h"

namespace outboard::node_resources_fit {

// kube-scheduler's hints (v1.36). Uses only the size of a node, not the pods on it. Ignores no
// resource, whatever the profile's arguments say. Pure.
sdk::Hint HintOf(const v1beta1::Pod& pod, const sdk::ObjectChange& change,
                 const sdk::DeviceClasses& classes);

}  // namespace outboard::node_resources_fit

#endif  // OUTBOARD_PLUGINS_NODE_RESOURCES_FIT_HINTS_H_
