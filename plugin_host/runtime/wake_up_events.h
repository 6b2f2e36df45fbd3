// Which events a plugin registered.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_WAKE_UP_EVENTS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_WAKE_UP_EVENTS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// The events of a descriptor, and those that kube-scheduler (v1.36) adds: a plugin that registers
// Node ADD without a change of taints also gets every change of taints, without a hint.
std::vector<v1beta1::ClusterEvent> WakeUpEventsOf(const sdk::PluginDescriptor& descriptor);

// Whether an event is among the registered ones.
bool AnyRegistered(const std::vector<v1beta1::ClusterEvent>& registered, absl::string_view resource,
                   v1beta1::ClusterEvent::Action action);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_WAKE_UP_EVENTS_H_
