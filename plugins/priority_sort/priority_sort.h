// PrioritySort: the pod of the highest priority first, then the one that has been queued longest.
#ifndef OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_
#define OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::priority_sort {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::priority_sort

#endif  // OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_
