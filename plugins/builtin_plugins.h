// The plugins that come with the host.
#ifndef OUTBOARD_PLUGINS_BUILTIN_PLUGINS_H_
#define OUTBOARD_PLUGINS_BUILTIN_PLUGINS_H_

#include "absl/status/status.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard {

// Adds every builtin plugin. An error is a bug in the list: a duplicate name, or an incomplete
// descriptor.
absl::Status RegisterBuiltinPlugins(sdk::PluginRegistry* registry);

}  // namespace outboard

#endif  // OUTBOARD_PLUGINS_BUILTIN_PLUGINS_H_
