// PrioritySort: orders pods by priority, then by queueing time.
#ifndef OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_
#define OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::priority_sort {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::priority_sort

#endif  // OUTBOARD_PLUGINS_PRIORITY_SORT_PRIORITY_SORT_H_
