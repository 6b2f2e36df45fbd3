// VolumeRestrictions: disks that pods may not share, and claims that only one pod may use.
#ifndef OUTBOARD_PLUGINS_VOLUME_RESTRICTIONS_VOLUME_RESTRICTIONS_H_
#define OUTBOARD_PLUGINS_VOLUME_RESTRICTIONS_VOLUME_RESTRICTIONS_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::volume_restrictions {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::volume_restrictions

#endif  // OUTBOARD_PLUGINS_VOLUME_RESTRICTIONS_VOLUME_RESTRICTIONS_H_
