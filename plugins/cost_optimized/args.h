// CostOptimized's arguments.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_ARGS_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_ARGS_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/gpu_resources.h"
#include "plugins/cost_optimized/cheap_hours.h"
#include "plugins/cost_optimized/price_reader.h"
#include "plugins/cost_optimized/spot_wish.h"

namespace outboard::cost_optimized {

// A JSON schema.
std::string ArgsSchema();

struct Args {
  // kClassic: the former formula, in which spot nodes are better for every pod.
  enum class Formula { kRelative, kClassic };
  Formula formula = Formula::kRelative;
  CheapHours hours;
  std::map<std::string, std::string> spot_labels;
  SpotRules spot;
  sdk::GpuResources gpus;
  std::string price_list;  // A file; empty: none.
  PriceReaderOptions reader;
  // Older prices from Prometheus are unknown.
  absl::Duration max_price_age = absl::Hours(1);
};

// Reports problems with the path of their field.
Args ReadArgs(const sdk::ArgsObject& root);

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_ARGS_H_
