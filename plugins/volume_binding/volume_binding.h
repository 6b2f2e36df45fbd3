// VolumeBinding: accepts nodes that a pod's volumes reach or where they can be provisioned, and
// binds claims that wait for a pod.
#ifndef OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_BINDING_H_
#define OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_BINDING_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::volume_binding {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::volume_binding

#endif  // OUTBOARD_PLUGINS_VOLUME_BINDING_VOLUME_BINDING_H_
