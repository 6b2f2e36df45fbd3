// Measured values of nodes, as a user's queries define them: arguments, columns, terms of scores.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_METRICS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_METRICS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plugin_host/sdk/plugin.h"
#include "plugin_host/sdk/prometheus/metric_reader.h"
#include "plugin_host/sdk/prometheus/node_names.h"

namespace outboard::prometheus {

struct MetricOptions {
  std::string name;
  std::string query;  // PromQL; one sample per node.
  std::vector<std::string> node_labels = DefaultNodeLabels();
  bool higher_is_better = false;
  // Values that are worst and best, or the reverse; absent: those of the candidates.
  struct Range {
    double from = 0, to = 0;
  };
  std::optional<Range> range;
  double weight = 1;
  absl::Duration max_age = absl::Minutes(2);
  absl::Duration period = absl::Seconds(15);
  // Nodes with values beyond these are rejected.
  std::optional<double> above, below;
};

struct MetricsOptions {
  ServerOptions server;
  std::vector<MetricOptions> metrics;
};

// A property `prometheus` and a property `metrics` of a JSON schema, separated by a comma.
std::string MetricsSchema();
// Reads both, and reports invalid values. `reserved`: names that metrics must not have. Without
// metrics, `prometheus` may be absent.
MetricsOptions ReadMetrics(const sdk::ArgsObject& root, const std::vector<std::string>& reserved);

// The metrics that NodeMetrics reports for a plugin: PREFIX_reads_total, PREFIX_nodes,
// PREFIX_age_seconds.
std::vector<sdk::MetricSpec> FiguresOf(absl::string_view prefix);

// The latest values, by metric and node. The plugin forwards the calls of ClusterObserver.
//
// Threading: thread-compatible; the plugin's thread.
// Lifetime: as the plugin.
// Errors: none. A node has no value if it has no sample, samples that differ, or old ones; the
//         metrics and one warning of each kind report them.
class NodeMetrics {
 public:
  // `plugin`: for log lines. Reads nothing with invalid arguments.
  NodeMetrics(const MetricsOptions& options, const MakeMetricSource& make,
              const sdk::PluginContext& context, std::string plugin, absl::string_view prefix);

  size_t size() const { return columns_.size(); }
  const MetricOptions& options(size_t metric) const { return columns_[metric].options; }

  // Takes new readings over, about once a second; other calls only compare two times. If a node is
  // within its bounds again, pods that Filter rejected are scheduled again.
  void Look(absl::Time now);
  std::optional<double> At(size_t metric, sdk::Slot slot, absl::Time now) const;
  // Writes how good each node is: 0 (worst) to 1 (best); 0.5 without a value.
  void Terms(size_t metric, absl::Time now, absl::Span<const sdk::Slot> nodes,
             absl::Span<double> terms) const;
  // Whether a candidate has a value.
  bool HasValues(size_t metric, absl::Time now, absl::Span<const sdk::Slot> nodes) const;
  bool has_bounds() const { return has_bounds_; }
  // Rejects nodes with a value beyond a bound.
  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block, sdk::FilterSink& sink);

  void Reset();
  void NodeChanged(sdk::Slot slot);
  void NodeRemoved(sdk::Slot slot);
  // The pod has a place, or was removed.
  void ForgetPod(const std::string& uid) { rejected_pods_.erase(uid); }
  void ShowFigures(absl::Time now);

 private:
  struct Column {
    MetricOptions options;
    std::shared_ptr<MetricSource> source;
    std::shared_ptr<const MetricSnapshot> snapshot;
    std::vector<double> values;  // By slot; NaN: none.
    int64_t ambiguous = 0;       // Nodes with samples that differ.
    int64_t unknown = 0;         // Samples of no node.
    bool warned_of_ambiguous = false, warned_of_unknown = false;
    std::shared_ptr<sdk::Gauge> measured, unmeasured, ambiguous_nodes, unknown_nodes, age;

    bool IsFresh(absl::Time now) const {
      return snapshot != nullptr && now - snapshot->asked <= options.max_age;
    }
  };
  void TakeIn(Column* column, absl::Time now);
  void Warn(const Column& column, absl::string_view what) const;
  // Returns true if a node is no longer rejected.
  bool UpdateRejections();
  void WakeRejected();
  sdk::Verdict RejectionOf(sdk::Slot slot) const;

  const std::string plugin_;
  const sdk::ClusterView cluster_;
  sdk::ShimNotifier* const pushes_;
  const bool shows_figures_;
  bool has_bounds_ = false;
  std::vector<Column> columns_;
  std::vector<char> there_;                         // By slot: whether a node is there.
  std::vector<sdk::Verdict> rejections_;            // By slot.
  int64_t rejected_ = 0;                            // Nodes.
  absl::flat_hash_set<std::string> rejected_pods_;  // Uids.
  bool stale_ = true;                               // Nodes were added or removed.
  absl::Time looked_ = absl::InfinitePast();
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_NODE_METRICS_H_
