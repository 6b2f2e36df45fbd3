// Coscheduling: members of a group are adjacent in the queue; a group that failed moves behind the
// existing ones.
#ifndef OUTBOARD_PLUGINS_COSCHEDULING_COSCHEDULING_H_
#define OUTBOARD_PLUGINS_COSCHEDULING_COSCHEDULING_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::coscheduling {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::coscheduling

#endif  // OUTBOARD_PLUGINS_COSCHEDULING_COSCHEDULING_H_
