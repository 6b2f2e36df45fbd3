// WorkloadStrategyScorer: scores training away from inference and towards contiguous GPUs, and
// inference by how well it fills a node's GPU memory.
#ifndef OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_WORKLOAD_STRATEGY_SCORER_H_
#define OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_WORKLOAD_STRATEGY_SCORER_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::workload_strategy_scorer {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::workload_strategy_scorer

#endif  // OUTBOARD_PLUGINS_WORKLOAD_STRATEGY_SCORER_WORKLOAD_STRATEGY_SCORER_H_
