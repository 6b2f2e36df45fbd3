// Figures of this process, read at each scrape.
#ifndef OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace outboard::host_metrics {

// From /proc/self/stat and of dropped log lines, in the order of ProcessMetricSpecs from the second
// on.
//
// Threading: thread-safe.
// Lifetime: any.
// Errors: omits what it cannot read.
class ProcessMetrics : public ::prometheus::Collectable {
 public:
  std::vector<::prometheus::MetricFamily> Collect() const override;
};

}  // namespace outboard::host_metrics

#endif  // OUTBOARD_PLUGIN_HOST_METRICS_PROCESS_METRICS_H_
