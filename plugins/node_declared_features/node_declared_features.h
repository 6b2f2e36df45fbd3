// NodeDeclaredFeatures: rejects nodes that do not declare a feature that the pod needs.
#ifndef OUTBOARD_PLUGINS_NODE_DECLARED_FEATURES_NODE_DECLARED_FEATURES_H_
#define OUTBOARD_PLUGINS_NODE_DECLARED_FEATURES_NODE_DECLARED_FEATURES_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::node_declared_features {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::node_declared_features

#endif  // OUTBOARD_PLUGINS_NODE_DECLARED_FEATURES_NODE_DECLARED_FEATURES_H_
