// A plugin's metrics: counters, gauges, histograms. The host exposes them in Prometheus' format;
// plugins do not depend on Prometheus.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::sdk {

enum class MetricType { kCounter, kGauge, kHistogram };

// A metric as a descriptor declares it. Name and labels in Prometheus' syntax: letters, digits and
// underscores, not beginning with two underscores. Names end with the unit (`_seconds`), or
// `_total` for counters. All plugins of a process share one registry, so the names of a plugin
// outside of this repository begin with `outboard_plugin_` and its own name, as in
// `outboard_plugin_price_score_reads_total`.
struct MetricSpec {
  std::string name;
  MetricType type = MetricType::kCounter;
  std::vector<std::string> labels;
  std::string help;
  std::vector<double> buckets = {};  // For a histogram: increasing upper bounds; +Inf is added.
  // Limit of sets of label values. Further sets are counted together, with "other" as the value of
  // every label; gauges, whose sum has no meaning, omit them.
  size_t max_children = 100;
};

// One set of label values. Bind it once, when the plugin is created; a call costs some nanoseconds.
//
// Threading: thread-safe.
// Lifetime: the holder's. Counters and histograms continue their values when they are bound again;
//           a gauge is exposed while it has a holder, with its last value.
// Errors: none; an invalid metric does nothing.
class Counter {
 public:
  virtual ~Counter() = default;
  virtual void Add(double amount = 1) = 0;  // Not negative.
};
class Gauge {
 public:
  virtual ~Gauge() = default;
  virtual void Set(double value) = 0;
};
class Histogram {
 public:
  virtual ~Histogram() = default;
  virtual void Observe(double value) = 0;
};

// A plugin's own metrics, by the names that its descriptor declares. An undeclared name, or another
// number of labels, returns a metric that does nothing, and logs a warning.
//
// Threading: thread-safe.
// Lifetime: as PluginContext; the holder owns returned metrics.
// Errors: none; never null.
class Metrics {
 public:
  virtual ~Metrics() = default;
  // Whether metrics are exposed: if not, skip values that are expensive to compute.
  virtual bool enabled() const = 0;
  virtual std::shared_ptr<Counter> NewCounter(absl::string_view name,
                                              const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<Gauge> NewGauge(absl::string_view name,
                                          const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<Histogram> NewHistogram(absl::string_view name,
                                                  const std::vector<std::string>& label_values) = 0;
};

// Metrics that do nothing. Never null; outlives everything.
Metrics* NoMetrics();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_
