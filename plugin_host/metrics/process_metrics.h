// What the kernel says of this process, read when it is scraped.
#ifndef OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace outboard::host_metrics {

// By /proc/self/stat, in the order of ProcessMetricSpecs from its second on.
//
// Threading: thread-safe. Lifetime: any. Errors: what cannot be read is left out.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace outboard::host_metrics

#endif  // OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_
