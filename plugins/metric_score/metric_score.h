// MetricScore: scores and rejects nodes by values that a user's PromQL measures.
#ifndef OUTBOARD_PLUGINS_METRIC_SCORE_METRIC_SCORE_H_
#define OUTBOARD_PLUGINS_METRIC_SCORE_METRIC_SCORE_H_

#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/prometheus/metric_reader.h"

namespace outboard::metric_score {

sdk::PluginDescriptor Descriptor();

// With other sources of snapshots; for tests.
sdk::PluginDescriptor DescriptorWith(prometheus::MakeMetricSource make_source);

}  // namespace outboard::metric_score

#endif  // OUTBOARD_PLUGINS_METRIC_SCORE_METRIC_SCORE_H_
