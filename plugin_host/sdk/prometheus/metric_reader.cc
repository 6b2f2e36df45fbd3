#include "plugin_host/sdk/prometheus/metric_reader.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/shared_readers.h"

namespace outboard::prometheus {

MetricReader::MetricReader(MetricReadOptions options, sdk::Metrics* metrics)
    : options_(std::move(options)),
      reader_(options_.read, options_.report, metrics,
              [this](absl::Time asked, const std::vector<Sample>& samples) {
                return Publish(asked, samples);
              }) {}

std::shared_ptr<MetricSource> MetricReader::Shared(const MetricReadOptions& options,
                                                   sdk::Metrics* metrics) {
  static auto& readers = *new SharedReaders<MetricReadOptions, MetricReader>();
  return readers.Get(options, [&] { return std::make_shared<MetricReader>(options, metrics); });
}

std::shared_ptr<const MetricSnapshot> MetricReader::Latest() const {
  absl::MutexLock lock(&mutex_);
  return latest_;
}

absl::Status MetricReader::Publish(absl::Time asked, const std::vector<Sample>& samples) {
  auto snapshot = std::make_shared<MetricSnapshot>();
  snapshot->asked = asked;
  for (const Sample& sample : samples) {
    const std::optional<double> number = sample.Number();
    std::vector<std::string> names = sample.Values(options_.node_labels);
    if (number && !names.empty()) snapshot->values.emplace_back(std::move(names), *number);
  }
  const size_t kept = snapshot->values.size();
  {
    absl::MutexLock lock(&mutex_);
    latest_ = std::move(snapshot);
  }
  if (kept > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("none of ", samples.size(),
                                          " samples is a number with a label that names a node"));
}

}  // namespace outboard::prometheus
