// WorkloadTypeFilter: pods that say what they need most go to nodes that have it.
#ifndef OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_
#define OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::workload_type_filter {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::workload_type_filter

#endif  // OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_
