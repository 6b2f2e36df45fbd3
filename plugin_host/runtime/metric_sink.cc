#include "plugin_host/runtime/metric_sink.h"

#include <glog/logging.h>

#include <utility>

namespace outboard::runtime {

PluginMetrics::PluginMetrics(std::string plugin, const std::vector<sdk::MetricSpec>* specs,
                             MetricSink* sink)
    : plugin_(std::move(plugin)), specs_(specs), sink_(sink) {}

const sdk::MetricSpec* PluginMetrics::Find(absl::string_view name, sdk::MetricType type,
                                           size_t labels) const {
  for (const sdk::MetricSpec& spec : *specs_) {
    if (spec.name == name && spec.type == type && spec.labels.size() == labels) return &spec;
  }
  LOG(ERROR) << "Plugin " << plugin_ << " declares no metric " << name << " of this type with "
             << labels << " labels: it is not kept";
  return nullptr;
}

std::shared_ptr<sdk::Counter> PluginMetrics::NewCounter(
    absl::string_view name, const std::vector<std::string>& label_values) {
  const auto* spec = Find(name, sdk::MetricType::kCounter, label_values.size());
  if (spec == nullptr || sink_ == nullptr) return sdk::NoMetrics()->NewCounter(name, label_values);
  return sink_->NewCounter(*spec, label_values);
}

std::shared_ptr<sdk::Gauge> PluginMetrics::NewGauge(absl::string_view name,
                                                    const std::vector<std::string>& label_values) {
  const auto* spec = Find(name, sdk::MetricType::kGauge, label_values.size());
  if (spec == nullptr || sink_ == nullptr) return sdk::NoMetrics()->NewGauge(name, label_values);
  return sink_->NewGauge(*spec, label_values);
}

std::shared_ptr<sdk::Histogram> PluginMetrics::NewHistogram(
    absl::string_view name, const std::vector<std::string>& label_values) {
  const auto* spec = Find(name, sdk::MetricType::kHistogram, label_values.size());
  if (spec == nullptr || sink_ == nullptr)
    return sdk::NoMetrics()->NewHistogram(name, label_values);
  return sink_->NewHistogram(*spec, label_values);
}

const sdk::MetricSpec& SessionsMetric() {
  static const sdk::MetricSpec& spec =
      *new sdk::MetricSpec{"outboard_plugin_host_sessions",
                           sdk::MetricType::kGauge,
                           {"instance"},
                           "Number of sessions of shims that are connected to an instance."};
  return spec;
}

const sdk::MetricSpec& AttemptsInFlightMetric() {
  static const sdk::MetricSpec& spec =
      *new sdk::MetricSpec{"outboard_plugin_host_attempts_in_flight",
                           sdk::MetricType::kGauge,
                           {"instance"},
                           "Number of attempts that an instance keeps, over all sessions."};
  return spec;
}

const sdk::MetricSpec& WritesMetric() {
  static const sdk::MetricSpec& spec =
      *new sdk::MetricSpec{"outboard_plugin_host_writes_total",
                           sdk::MetricType::kCounter,
                           {"plugin", "outcome"},
                           "Background writes of plugins that the shim answered, by outcome: "
                           "applied, forbidden, conflict, superseded, unknown, failed."};
  return spec;
}

}  // namespace outboard::runtime
