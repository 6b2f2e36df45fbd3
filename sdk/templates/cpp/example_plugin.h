// ExamplePlugin: rejects nodes that cost too much, and prefers cheap nodes.
#ifndef EXAMPLE_PLUGIN_H_
#define EXAMPLE_PLUGIN_H_

#include "plugin_host/sdk/plugin.h"

namespace example_plugin {

outboard::sdk::PluginDescriptor Descriptor();

}  // namespace example_plugin

#endif  // EXAMPLE_PLUGIN_H_
