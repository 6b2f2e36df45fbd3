// StaticIP: places pods that keep their IP on nodes that can serve it.
#ifndef OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_H_
#define OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::static_ip {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::static_ip

#endif  // OUTBOARD_PLUGINS_STATIC_IP_STATIC_IP_H_
