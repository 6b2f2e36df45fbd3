// The plugin's arguments.
#ifndef OUTBOARD_PLUGINS_OBJECTIVES_ARGS_H_
#define OUTBOARD_PLUGINS_OBJECTIVES_ARGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugin_host/sdk/prometheus/node_metrics.h"
#include "plugins/objectives/wishes.h"

namespace outboard::objectives {

std::string ArgsSchema();

struct Args {
  Weights weights;
  std::vector<std::string> levels = {"topology.kubernetes.io/rack", "topology.kubernetes.io/zone",
                                     "topology.kubernetes.io/region"};
  std::string cost_label = "node-cost-per-hour";
  std::string region_label = "topology.kubernetes.io/region";
  absl::flat_hash_map<std::string, int64_t> licences;
  sdk::GpuResources gpus;
  prometheus::MetricsOptions metrics;  // Their weights are in `weights`.
};

// Reports invalid arguments to `root`.
Args ReadArgs(const sdk::ArgsObject& root);

}  // namespace outboard::objectives

#endif  // OUTBOARD_PLUGINS_OBJECTIVES_ARGS_H_
