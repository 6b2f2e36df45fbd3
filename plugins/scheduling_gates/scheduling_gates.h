// SchedulingGates: keeps a pod out of the queue while its spec has scheduling gates.
#ifndef OUTBOARD_PLUGINS_SCHEDULING_GATES_SCHEDULING_GATES_H_
#define OUTBOARD_PLUGINS_SCHEDULING_GATES_SCHEDULING_GATES_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::scheduling_gates {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::scheduling_gates

#endif  // OUTBOARD_PLUGINS_SCHEDULING_GATES_SCHEDULING_GATES_H_
