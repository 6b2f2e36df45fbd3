// CostOptimized: prefers cheap, spot and well used nodes; pods may wait for cheap hours.
#ifndef OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_
#define OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_

#include <functional>
#include <memory>

#include "plugin_host/sdk/plugin.h"
#include "plugins/cost_optimized/price_reader.h"

namespace outboard::cost_optimized {

sdk::PluginDescriptor Descriptor();

// With another source of published prices; for tests.
using MakeSource = std::function<std::shared_ptr<PriceSource>(const PriceReaderOptions& options,
                                                              sdk::Metrics* metrics)>;
sdk::PluginDescriptor DescriptorWith(MakeSource make_source);

}  // namespace outboard::cost_optimized

#endif  // OUTBOARD_PLUGINS_COST_OPTIMIZED_COST_OPTIMIZED_H_
