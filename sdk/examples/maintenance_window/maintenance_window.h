// MaintenanceWindow: rejects nodes that are in maintenance, or soon will be.
#ifndef MAINTENANCE_WINDOW_MAINTENANCE_WINDOW_H_
#define MAINTENANCE_WINDOW_MAINTENANCE_WINDOW_H_

#include "plugin_host/sdk/plugin.h"

namespace maintenance_window {

outboard::sdk::PluginDescriptor Descriptor();

}  // namespace maintenance_window

#endif  // MAINTENANCE_WINDOW_MAINTENANCE_WINDOW_H_
