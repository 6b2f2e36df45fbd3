#include "plugins/metric_score/metric_score.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/node_metrics.h"

namespace outboard::metric_score {
namespace {

using prometheus::MetricsOptions;

constexpr char kName[] = "MetricScore";
constexpr char kPrefix[] = "outboard_metric_score";

std::string ArgsSchema() {
  return absl::StrCat(
      R"json({"type": "object", "additionalProperties": false, "properties": {)json",
      prometheus::MetricsSchema(), "}}");
}

class MetricScore : public sdk::Plugin,
                    public sdk::FilterPlugin,
                    public sdk::ScorePlugin,
                    public sdk::ClusterObserver {
 public:
  MetricScore(const MetricsOptions& options, const prometheus::MakeMetricSource& make,
              const sdk::PluginContext& context)
      : metrics_(options, make, context, kName, kPrefix) {
    for (const prometheus::MetricOptions& metric : options.metrics) weights_ += metric.weight;
  }

  void Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
              sdk::FilterSink& sink) const override {
    metrics_.Filter(attempt, block, sink);
  }

  // In 0..100 without normalisation, so that a range means the same for all pods.
  sdk::Verdict Score(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
                     absl::Span<int64_t> raw) const override {
    metrics_.Look(attempt.now());
    std::vector<double> sums(nodes.size(), 0), terms(nodes.size());
    for (size_t metric = 0; metric < metrics_.size(); ++metric) {
      const double weight = ShareOf(metric);
      if (weight == 0) continue;
      metrics_.Terms(metric, attempt.now(), nodes, absl::MakeSpan(terms));
      for (size_t i = 0; i < nodes.size(); ++i) sums[i] += weight * terms[i];
    }
    for (size_t i = 0; i < nodes.size(); ++i)
      raw[i] = std::clamp<int64_t>(std::lround(sums[i]), 0, sdk::kMaxScore);
    if (VLOG_IS_ON(4)) Log(attempt, nodes, raw);
    return sdk::Verdict::Success();
  }

  // The share of each metric in the score.
  std::vector<std::vector<sdk::ScoreTerm>> Explain(
      const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes) const override {
    std::vector<std::vector<sdk::ScoreTerm>> explained(nodes.size());
    std::vector<double> terms(nodes.size());
    for (size_t metric = 0; metric < metrics_.size(); ++metric) {
      const double weight = ShareOf(metric);
      if (weight == 0) continue;
      metrics_.Terms(metric, attempt.now(), nodes, absl::MakeSpan(terms));
      for (size_t i = 0; i < nodes.size(); ++i)
        explained[i].push_back({metrics_.options(metric).name, weight * terms[i]});
    }
    return explained;
  }

  void OnReset() override { metrics_.Reset(); }
  void OnNodeChanged(sdk::Slot slot) override { metrics_.NodeChanged(slot); }
  void OnNodeRemoved(sdk::Slot slot, const std::string&) override { metrics_.NodeRemoved(slot); }
  void OnPodAddedToNode(const sdk::PodRecord& pod, sdk::Slot) override {
    metrics_.ForgetPod(pod.pod.uid());
  }
  void OnPodRemoved(const sdk::PodRecord& pod) override { metrics_.ForgetPod(pod.pod.uid()); }
  void OnTick(absl::Time now) override {
    metrics_.Look(now);
    metrics_.ShowFigures(now);
  }

 private:
  // 100 in all.
  double ShareOf(size_t metric) const {
    return weights_ > 0 ? 100 * metrics_.options(metric).weight / weights_ : 0;
  }

  void Log(const sdk::Attempt& attempt, absl::Span<const sdk::Slot> nodes,
           absl::Span<const int64_t> scores) const {
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::string values;
      for (size_t metric = 0; metric < metrics_.size(); ++metric) {
        const std::optional<double> value = metrics_.At(metric, nodes[i], attempt.now());
        absl::StrAppend(&values, metric == 0 ? "" : ", ", metrics_.options(metric).name, " ");
        if (value) {
          absl::StrAppend(&values, *value);
        } else {
          absl::StrAppend(&values, "not measured");
        }
      }
      VLOG(4) << kName << ": node " << attempt.cluster().node(nodes[i]).name() << " pod "
              << attempt.pod().uid() << ": " << values << ", score " << scores[i];
    }
  }

  // Mutable: calls take new readings over. All calls come on one thread.
  mutable prometheus::NodeMetrics metrics_;
  double weights_ = 0;  // Of all metrics.
};

}  // namespace

sdk::PluginDescriptor DescriptorWith(prometheus::MakeMetricSource make_source) {
  sdk::PluginDescriptor d;
  d.name = kName;
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_SCORE};
  d.args_schema = ArgsSchema();
  // The plugin itself reports that a node is within its bounds again.
  d.wake_up_events = {sdk::WakeOn("Node", {v1beta1::ClusterEvent::ACTION_ADD})};
  d.metrics = prometheus::FiguresOf(kPrefix);
  d.signature = std::vector<std::string>{};  // It does not read the pod.
  d.maturity = sdk::Maturity::kAlpha;
  d.create =
      [make_source = std::move(make_source)](
          const sdk::PluginContext& context) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    const sdk::ArgsObject root = context.args->root();
    const MetricsOptions options = prometheus::ReadMetrics(root, {});
    if (options.metrics.empty())
      root.Warning("metrics", "no metric is configured: the plugin scores no node");
    return std::make_unique<MetricScore>(options, make_source, context);
  };
  return d;
}

sdk::PluginDescriptor Descriptor() { return DescriptorWith(&prometheus::MetricReader::Shared); }

}  // namespace outboard::metric_score
