// VolumeZone: keeps a pod in the zone and region of its volumes.
#ifndef OUTBOARD_PLUGINS_VOLUME_ZONE_VOLUME_ZONE_H_
#define OUTBOARD_PLUGINS_VOLUME_ZONE_VOLUME_ZONE_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::volume_zone {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::volume_zone

#endif  // OUTBOARD_PLUGINS_VOLUME_ZONE_VOLUME_ZONE_H_
