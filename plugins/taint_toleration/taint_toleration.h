// TaintToleration: rejects nodes with untolerated taints, and prefers nodes with fewer untolerated
// PreferNoSchedule taints.
#ifndef OUTBOARD_PLUGINS_TAINT_TOLERATION_TAINT_TOLERATION_H_
#define OUTBOARD_PLUGINS_TAINT_TOLERATION_TAINT_TOLERATION_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::taint_toleration {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::taint_toleration

#endif  // OUTBOARD_PLUGINS_TAINT_TOLERATION_TAINT_TOLERATION_H_
