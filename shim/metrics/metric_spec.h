// Definition of a metric.
#ifndef OUTBOARD_SHIM_METRICS_METRIC_SPEC_H_
#define OUTBOARD_SHIM_METRICS_METRIC_SPEC_H_

#include <array>

namespace outboard::metrics {

enum class MetricType { kCounter, kGauge, kHistogram };

// `count` bucket bounds: start, start*factor, …, or those of `bounds`; and +Inf.
struct Buckets {
  double start = 0;
  double factor = 0;
  int count = 0;
  std::array<double, 7> bounds{};
};

struct MetricSpec {
  const char* name;
  MetricType type;
  std::array<const char*, 4> labels;  // unused entries are null
  Buckets buckets;                    // histograms only
  const char* help;
};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_METRIC_SPEC_H_
