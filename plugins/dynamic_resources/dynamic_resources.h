// DynamicResources: handles pods without resource claims, and rejects pods with claims.
#ifndef OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DYNAMIC_RESOURCES_H_
#define OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DYNAMIC_RESOURCES_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::dynamic_resources {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::dynamic_resources

#endif  // OUTBOARD_PLUGINS_DYNAMIC_RESOURCES_DYNAMIC_RESOURCES_H_
