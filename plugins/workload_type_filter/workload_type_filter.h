// WorkloadTypeFilter: places CPU- or GPU-intensive pods on nodes with free CPU or with GPUs.
#ifndef OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_
#define OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::workload_type_filter {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::workload_type_filter

#endif  // OUTBOARD_PLUGINS_WORKLOAD_TYPE_FILTER_WORKLOAD_TYPE_FILTER_H_
