// The destination of the host's and its plugins' metrics.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/metrics.h"

namespace outboard::runtime {

// A histogram whose owner counts by itself and hands the counts on from time to time.
class CountedHistogram {
 public:
  virtual ~CountedHistogram() = default;
  // One count per bucket, and the one above all bounds; the sum of the values.
  virtual void Add(absl::Span<const uint32_t> counts, double sum) = 0;
};

// Creates the children of metrics. A null sink: metrics are off.
//
// Threading: thread-safe.
// Lifetime:  outlives its users; children may outlive it. Specs are copied.
// Errors: none; never null. An invalid metric (an existing name with another type or other labels)
//         does nothing, and is logged.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  // One value per label of the spec.
  virtual std::shared_ptr<sdk::Counter> NewCounter(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec& spec,
                                               const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<sdk::Histogram> NewHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) = 0;
  // Null: not kept.
  virtual std::shared_ptr<CountedHistogram> NewCountedHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) {
    return nullptr;
  }
};

// A plugin's view of a sink: the metrics that its descriptor declares.
//
// Threading: thread-safe.
// Lifetime: of one plugin; `specs` and `sink` (may be null) outlive it.
class PluginMetrics : public sdk::Metrics {
 public:
  PluginMetrics(std::string plugin, const std::vector<sdk::MetricSpec>* specs, MetricSink* sink);
  bool enabled() const override { return sink_ != nullptr; }
  std::shared_ptr<sdk::Counter> NewCounter(absl::string_view name,
                                           const std::vector<std::string>& label_values) override;
  std::shared_ptr<sdk::Gauge> NewGauge(absl::string_view name,
                                       const std::vector<std::string>& label_values) override;
  std::shared_ptr<sdk::Histogram> NewHistogram(
      absl::string_view name, const std::vector<std::string>& label_values) override;

 private:
  // Null, with a log line, if the descriptor does not declare it. Also checks without a sink, so
  // that tests show faults.
  const sdk::MetricSpec* Find(absl::string_view name, sdk::MetricType type, size_t labels) const;

  const std::string plugin_;
  const std::vector<sdk::MetricSpec>* const specs_;
  MetricSink* const sink_;
};

// The host's own metrics, per instance.
const sdk::MetricSpec& SessionsMetric();
const sdk::MetricSpec& AttemptsInFlightMetric();
// Over all instances of the process.
const sdk::MetricSpec& WritesMetric();

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_
