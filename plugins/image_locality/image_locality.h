// ImageLocality: prefers nodes that have the pod's images.
#ifndef OUTBOARD_PLUGINS_IMAGE_LOCALITY_IMAGE_LOCALITY_H_
#define OUTBOARD_PLUGINS_IMAGE_LOCALITY_IMAGE_LOCALITY_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::image_locality {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::image_locality

#endif  // OUTBOARD_PLUGINS_IMAGE_LOCALITY_IMAGE_LOCALITY_H_
