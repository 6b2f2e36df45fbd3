// NotServed: refuses pods that need what no plugin of this host judges yet, rather than place them
// wrongly.
#ifndef OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_
#define OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::not_served {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::not_served

#endif  // OUTBOARD_PLUGINS_NOT_SERVED_NOT_SERVED_H_
