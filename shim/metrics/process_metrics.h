// Figures about this process, the kernel's and dropped log lines, read when scraped.
#ifndef OUTBOARD_SHIM_METRICS_PROCESS_METRICS_H_
#define OUTBOARD_SHIM_METRICS_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace outboard::metrics {

// Threading: thread-safe.
// Lifetime: registered in a registry that does not own it.
// Errors: unreadable values are omitted.
class ProcessMetrics : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_PROCESS_METRICS_H_
