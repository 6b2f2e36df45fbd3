// What the host says about a plugin.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_INFO_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_INFO_H_

#include "outboard/v1beta1/plugin_host.pb.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::runtime {

// The plugin as GetHostInfo describes it. Pure.
v1beta1::PluginInfo PluginInfoOf(const sdk::PluginDescriptor& descriptor);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_PLUGIN_INFO_H_
