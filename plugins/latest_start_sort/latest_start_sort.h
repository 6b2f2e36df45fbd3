// LatestStartSort: orders the queue by priority, then by slack to the pod's latest start.
#ifndef OUTBOARD_PLUGINS_LATEST_START_SORT_LATEST_START_SORT_H_
#define OUTBOARD_PLUGINS_LATEST_START_SORT_LATEST_START_SORT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::latest_start_sort {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::latest_start_sort

#endif  // OUTBOARD_PLUGINS_LATEST_START_SORT_LATEST_START_SORT_H_
