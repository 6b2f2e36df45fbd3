// Objectives: scores nodes by weighted cost, network distance, GPU and CPU use, within hard bounds.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_

#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/prometheus/metric_reader.h"

namespace outboard::objectives {

sdk::PluginDescriptor Descriptor();

// With other sources of measured values; for tests.
sdk::PluginDescriptor DescriptorWith(prometheus::MakeMetricSource make_source);

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_OBJECTIVES_H_
