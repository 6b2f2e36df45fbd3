// DefaultBinder: the plugin name by which profiles enable the shim's own binding.
#ifndef OUTBOARD_PLUGINS_DEFAULT_BINDER_DEFAULT_BINDER_H_
#define OUTBOARD_PLUGINS_DEFAULT_BINDER_DEFAULT_BINDER_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::default_binder {

// Only a descriptor: the shim writes the Binding itself and never calls a host for it.
sdk::PluginDescriptor Descriptor();

}  // namespace outboard::default_binder

#endif  // OUTBOARD_PLUGINS_DEFAULT_BINDER_DEFAULT_BINDER_H_
