// Figures that a plugin keeps for people: counters, gauges, histograms. The host shows them as
// Prometheus' text; a plugin knows nothing of that.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace outboard::sdk {

enum class MetricType { kCounter, kGauge, kHistogram };

// A metric as a descriptor declares it. Name and labels as Prometheus takes them: letters, digits
// and underscores, none that begins with two; the unit at the end (`_seconds`), `_total` for
// counters.
struct MetricSpec {
  std::string name;
  MetricType type = MetricType::kCounter;
  std::vector<std::string> labels;
  std::string help;
  std::vector<double> buckets = {};  // Of a histogram: upper bounds, rising; +Inf is added.
  // As many sets of label values at most. Further ones are counted together, with "other" as the
  // value of every label; of gauges, whose sum would mean nothing, they are left out.
  size_t max_children = 100;
};

// One set of label values. Bind it once, when the plugin is made; a call costs some nanoseconds.
//
// Threading: thread-safe.
// Lifetime:  the holder's. Counters and histograms go on where they were when they are bound again;
//            a gauge is shown as long as somebody holds it, with what was set last.
// Errors:    none; what cannot be shown does nothing.
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

// A plugin's own metrics, by the names that its descriptor declares; a name that it does not
// declare, or with another number of labels, gives something that does nothing, and a line in the
// log.
//
// Threading: thread-safe. Lifetime: as PluginContext; what it hands out is the holder's. Errors:
// none; never null.
class Metrics {
 public:
  virtual ~Metrics() = default;
  // Whether anybody can see them: figures that cost something to find need not be found else.
  virtual bool enabled() const = 0;
  virtual std::shared_ptr<Counter> NewCounter(absl::string_view name,
                                              const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<Gauge> NewGauge(absl::string_view name,
                                          const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<Histogram> NewHistogram(absl::string_view name,
                                                  const std::vector<std::string>& label_values) = 0;
};

// All of it does nothing. Never null; outlives everything.
Metrics* NoMetrics();

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_METRICS_H_
