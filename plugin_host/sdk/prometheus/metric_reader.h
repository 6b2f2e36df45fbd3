// Reads one measured value per node: the answer to a user's query.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_METRIC_READER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_METRIC_READER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/prometheus/periodic_reader.h"
#include "plugin_host/sdk/prometheus/samples.h"

namespace outboard::prometheus {

struct MetricReadOptions {
  ReadOptions read;
  ReportOptions report;
  std::vector<std::string> node_labels;

  friend bool operator==(const MetricReadOptions&, const MetricReadOptions&) = default;
};

// The result of one reading; immutable.
struct MetricSnapshot {
  absl::Time asked;  // This machine's time before the query.
  // Finite values, with the names that their samples give the node, in order.
  std::vector<std::pair<std::vector<std::string>, double>> values;
};

// Where snapshots come from; a seam for tests.
//
// Threading: thread-safe.
class MetricSource {
 public:
  virtual ~MetricSource() = default;
  // Null before the first reading; the same object until the next one.
  virtual std::shared_ptr<const MetricSnapshot> Latest() const = 0;
};
using MakeMetricSource =
    std::function<std::shared_ptr<MetricSource>(const MetricReadOptions&, sdk::Metrics*)>;

// Publishes a snapshot after each reading. A failed reading publishes nothing, so that values grow
// old.
//
// Threading: thread-safe.
// Lifetime: the destructor cancels a running query.
// Errors: none; see PeriodicReader.
class MetricReader : public MetricSource {
 public:
  MetricReader(MetricReadOptions options, sdk::Metrics* metrics);
  // The process's shared reader with these options.
  static std::shared_ptr<MetricSource> Shared(const MetricReadOptions& options,
                                              sdk::Metrics* metrics);

  std::shared_ptr<const MetricSnapshot> Latest() const override;

 private:
  absl::Status Publish(absl::Time asked, const std::vector<Sample>& samples);

  const MetricReadOptions options_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const MetricSnapshot> latest_ ABSL_GUARDED_BY(mutex_);
  PeriodicReader reader_;  // Last member: it uses the others.
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_METRIC_READER_H_
