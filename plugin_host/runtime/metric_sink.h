// Where the host's and its plugins' figures go.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/sdk/metrics.h"

namespace outboard::runtime {

// Makes the children of metrics. A sink of null means that nobody looks.
//
// Threading: thread-safe.
// Lifetime:  outlives its users; children may outlive it. Specs are copied.
// Errors:    none; never null: what is wrong (a name that is taken with another type or other
//            labels) does nothing, and is logged.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  // As many values as the spec has labels.
  virtual std::shared_ptr<sdk::Counter> NewCounter(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec& spec,
                                               const std::vector<std::string>& label_values) = 0;
  virtual std::shared_ptr<sdk::Histogram> NewHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) = 0;
};

// What a plugin sees of a sink: the metrics that its descriptor declares.
//
// Threading: thread-safe. Lifetime: of one plugin; `specs` and `sink` (may be null) outlive it.
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
  // Null, which was logged, if the descriptor has none like that. Also without a sink, so that what
  // is wrong shows in tests.
  const sdk::MetricSpec* Find(absl::string_view name, sdk::MetricType type, size_t labels) const;

  const std::string plugin_;
  const std::vector<sdk::MetricSpec>* const specs_;
  MetricSink* const sink_;
};

// The host's own, of each instance.
const sdk::MetricSpec& SessionsMetric();
const sdk::MetricSpec& AttemptsInFlightMetric();

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_METRIC_SINK_H_
