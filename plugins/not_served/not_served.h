// NotServed: rejects pods that use a feature that no plugin of this host supports yet. Without it
// they would be placed by incomplete rules.
#ifndef OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_
#define OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::not_served {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::not_served

#endif  // OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_
