// The metrics of one host process, as Prometheus metrics. ::prometheus is the library
// prometheus-cpp; outboard::prometheus, which it has nothing to do with, reads a Prometheus server.
#ifndef OUTBOARD_PLUGIN_HOST_METRICS_PROMETHEUS_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_METRICS_PROMETHEUS_METRICS_H_

#include <prometheus/collectable.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "plugin_host/runtime/metric_sink.h"
#include "plugin_host/sdk/metrics.h"

namespace outboard::host_metrics {

// All instances and plugins of a process keep their metrics here: two that bind the same metric
// with the same label values share a child.
//
// Threading: thread-safe; observing takes no lock except a histogram's own.
// Lifetime:  any; children keep their dependencies alive.
// Errors:    none, as MetricSink.
class PrometheusMetrics : public runtime::MetricSink {
 public:
  explicit PrometheusMetrics(absl::string_view version);
  ~PrometheusMetrics() override;

  std::shared_ptr<sdk::Counter> NewCounter(const sdk::MetricSpec& spec,
                                           const std::vector<std::string>& label_values) override;
  std::shared_ptr<sdk::Gauge> NewGauge(const sdk::MetricSpec& spec,
                                       const std::vector<std::string>& label_values) override;
  std::shared_ptr<sdk::Histogram> NewHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) override;

  std::shared_ptr<runtime::CountedHistogram> NewCountedHistogram(
      const sdk::MetricSpec& spec, const std::vector<std::string>& label_values) override;

  // What a server exposes; the kernel's figures are read at each scrape.
  std::vector<std::shared_ptr<::prometheus::Collectable>> collectables() const;
  // Prometheus' text format, version 0.0.4.
  std::string Text() const;

 private:
  class Families;
  const std::shared_ptr<Families> families_;
  const std::shared_ptr<::prometheus::Collectable> process_;
  std::shared_ptr<sdk::Gauge> build_info_;
};

// The process's own metrics, in the README's order; the instances' are in metric_sink.h.
const std::vector<sdk::MetricSpec>& ProcessMetricSpecs();

}  // namespace outboard::host_metrics

#endif  // OUTBOARD_PLUGIN_HOST_METRICS_PROMETHEUS_METRICS_H_
