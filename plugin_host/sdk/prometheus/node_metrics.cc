#include "plugin_host/sdk/prometheus/node_metrics.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::prometheus {
namespace {

// How often a plugin checks for new snapshots.
constexpr absl::Duration kLookEvery = absl::Milliseconds(900);
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kNeutralTerm = 0.5;
// 16 metrics, each with nine results or four states, in several profiles.
constexpr size_t kMaxFigures = 1000;
constexpr size_t kMaxRejectedPods = 100000;

MetricReadOptions ReadOptionsOf(const ServerOptions& server, const MetricOptions& metric,
                                const std::string& plugin, absl::string_view prefix) {
  MetricReadOptions options;
  options.read = {server, metric.query, metric.max_age, metric.period};
  options.report.plugin = plugin;
  options.report.what = absl::StrCat("metric ", metric.name);
  options.report.consequence =
      absl::StrCat("nodes are neutral once the last reading is older than ",
                   absl::FormatDuration(metric.max_age));
  options.report.metric = absl::StrCat(prefix, "_reads_total");
  options.report.label_values = {metric.name};
  options.node_labels = metric.node_labels;
  return options;
}

// Where `value` is between both: 0..1. Halves, because a difference may overflow.
double ShareOf(double value, double from, double to) {
  const double share = (value / 2 - from / 2) / (to / 2 - from / 2);
  return std::clamp(share, 0.0, 1.0);
}

}  // namespace

std::vector<sdk::MetricSpec> FiguresOf(absl::string_view prefix) {
  using Type = sdk::MetricType;
  std::vector<sdk::MetricSpec> specs = {
      {absl::StrCat(prefix, "_reads_total"),
       Type::kCounter,
       {"metric", "result"},
       "Readings of Prometheus by result: ok, unreachable, timeout, status, too_large, token, "
       "malformed, error, no_samples."},
      {absl::StrCat(prefix, "_nodes"),
       Type::kGauge,
       {"profile", "metric", "state"},
       "Nodes by state: measured, unmeasured (no sample, or too old), ambiguous (samples that "
       "differ); and samples of unknown nodes."},
      {absl::StrCat(prefix, "_age_seconds"),
       Type::kGauge,
       {"profile", "metric"},
       "Age of the last reading."}};
  for (sdk::MetricSpec& spec : specs) spec.max_children = kMaxFigures;
  return specs;
}

NodeMetrics::NodeMetrics(const MetricsOptions& options, const MakeMetricSource& make,
                         const sdk::PluginContext& context, std::string plugin,
                         absl::string_view prefix)
    : plugin_(std::move(plugin)),
      cluster_(context.cluster),
      pushes_(context.pushes),
      shows_figures_(context.metrics->enabled()) {
  for (const MetricOptions& metric : options.metrics) {
    Column& column = columns_.emplace_back();
    column.options = metric;
    has_bounds_ |= metric.above.has_value() || metric.below.has_value();
    if (context.args->ok())
      column.source = make(ReadOptionsOf(options.server, metric, plugin_, prefix), context.metrics);
    const auto nodes = [&](const char* state) {
      return context.metrics->NewGauge(absl::StrCat(prefix, "_nodes"),
                                       {context.profile, metric.name, state});
    };
    column.measured = nodes("measured");
    column.unmeasured = nodes("unmeasured");
    column.ambiguous_nodes = nodes("ambiguous");
    column.unknown_nodes = nodes("unknown");
    column.age = context.metrics->NewGauge(absl::StrCat(prefix, "_age_seconds"),
                                           {context.profile, metric.name});
  }
}

void NodeMetrics::Look(absl::Time now) {
  if (now - looked_ < kLookEvery && now >= looked_) return;
  const absl::Time before = std::exchange(looked_, now);
  const bool all = std::exchange(stale_, false);
  bool changed = all;
  for (Column& column : columns_) {
    std::shared_ptr<const MetricSnapshot> latest =
        column.source == nullptr ? nullptr : column.source->Latest();
    const bool has_ended = column.IsFresh(before) && !column.IsFresh(now);
    if (!all && latest == column.snapshot && !has_ended) continue;
    column.snapshot = std::move(latest);
    TakeIn(&column, now);
    changed = true;
  }
  if (changed && has_bounds_ && UpdateRejections()) WakeRejected();
}

void NodeMetrics::TakeIn(Column* column, absl::Time now) {
  column->values.assign(there_.size(), kNone);
  column->ambiguous = 0;
  column->unknown = 0;
  if (!column->IsFresh(now)) return;
  std::vector<char> is_ambiguous(there_.size(), 0);
  NodeNames finder(cluster_);
  for (const auto& [names, value] : column->snapshot->values) {
    const std::optional<sdk::Slot> slot = finder.Find(names);
    if (!slot || *slot >= there_.size()) {
      if (column->unknown++ == 0 && !std::exchange(column->warned_of_unknown, true))
        Warn(*column,
             absl::StrCat("a sample is ignored: no node is named ", names[0], " (see nodeLabels)"));
      continue;
    }
    double& known = column->values[*slot];
    if (is_ambiguous[*slot] != 0 || known == value) continue;
    if (std::isnan(known)) {
      known = value;
      continue;
    }
    is_ambiguous[*slot] = 1;
    known = kNone;
    if (column->ambiguous++ == 0 && !std::exchange(column->warned_of_ambiguous, true))
      Warn(*column, absl::StrCat("node ", names[0],
                                 " has several samples that differ, and counts as not measured: "
                                 "aggregate them in the query, for example max by (node) (...)"));
  }
}

void NodeMetrics::Warn(const Column& column, absl::string_view what) const {
  LOG(WARNING) << plugin_ << ": metric " << column.options.name << ": " << what
               << "; further ones are only counted";
}

bool NodeMetrics::UpdateRejections() {
  bool has_ended = false;
  rejections_.resize(there_.size());
  rejected_ = 0;
  for (sdk::Slot slot = 0; slot < rejections_.size(); ++slot) {
    sdk::Verdict verdict = RejectionOf(slot);
    if (!verdict.ok()) ++rejected_;
    has_ended |= verdict.ok() && !rejections_[slot].ok();
    rejections_[slot] = std::move(verdict);
  }
  return has_ended;
}

sdk::Verdict NodeMetrics::RejectionOf(sdk::Slot slot) const {
  for (const Column& column : columns_) {
    if (slot >= column.values.size() || std::isnan(column.values[slot])) continue;
    const MetricOptions& options = column.options;
    const double value = column.values[slot];
    if (options.above && value > *options.above)
      return sdk::Verdict::Unresolvable(
          absl::StrCat("metric ", options.name, " is ", value, ", at most ", *options.above));
    if (options.below && value < *options.below)
      return sdk::Verdict::Unresolvable(
          absl::StrCat("metric ", options.name, " is ", value, ", at least ", *options.below));
  }
  return sdk::Verdict::Success();
}

void NodeMetrics::Filter(const sdk::Attempt& attempt, const sdk::NodeBlock& block,
                         sdk::FilterSink& sink) {
  Look(attempt.now());
  if (rejected_ == 0) return;
  bool rejected = false;
  block.ForEach([&](int i, sdk::Slot slot) {
    if (slot >= rejections_.size() || rejections_[slot].ok()) return;
    sink.RejectWith(i, rejections_[slot]);
    rejected = true;
  });
  if (rejected && rejected_pods_.size() < kMaxRejectedPods)
    rejected_pods_.insert(std::string(attempt.pod().uid()));
}

void NodeMetrics::WakeRejected() {
  if (rejected_pods_.empty()) return;
  const std::vector<std::string> uids(rejected_pods_.begin(), rejected_pods_.end());
  rejected_pods_.clear();
  pushes_->Activate(uids);
}

bool NodeMetrics::HasValues(size_t metric, absl::Time now,
                            absl::Span<const sdk::Slot> nodes) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](sdk::Slot slot) { return At(metric, slot, now).has_value(); });
}

std::optional<double> NodeMetrics::At(size_t metric, sdk::Slot slot, absl::Time now) const {
  const Column& column = columns_[metric];
  if (slot >= column.values.size() || std::isnan(column.values[slot]) || !column.IsFresh(now))
    return std::nullopt;
  return column.values[slot];
}

void NodeMetrics::Terms(size_t metric, absl::Time now, absl::Span<const sdk::Slot> nodes,
                        absl::Span<double> terms) const {
  const MetricOptions& options = columns_[metric].options;
  double from = std::numeric_limits<double>::infinity(), to = -from;
  if (options.range) {
    from = options.range->from;
    to = options.range->to;
  } else {
    for (const sdk::Slot slot : nodes) {
      const std::optional<double> value = At(metric, slot, now);
      if (!value) continue;
      from = std::min(from, *value);
      to = std::max(to, *value);
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::optional<double> value = At(metric, nodes[i], now);
    // Equal values tell nothing about which node is better.
    if (!value || !(from < to)) {
      terms[i] = kNeutralTerm;
      continue;
    }
    const double share = ShareOf(*value, from, to);
    terms[i] = options.higher_is_better ? share : 1 - share;
  }
}

void NodeMetrics::Reset() {
  there_.clear();
  rejections_.clear();
  rejected_pods_.clear();
  rejected_ = 0;
  for (Column& column : columns_) column.values.clear();
  stale_ = true;
  looked_ = absl::InfinitePast();
}

void NodeMetrics::NodeChanged(sdk::Slot slot) {
  if (slot >= there_.size()) there_.resize(slot + 1);
  if (std::exchange(there_[slot], 1) == 0) stale_ = true;
}

// The next node in the slot is another one.
void NodeMetrics::NodeRemoved(sdk::Slot slot) {
  if (slot < there_.size()) there_[slot] = 0;
  for (Column& column : columns_) {
    if (slot < column.values.size()) column.values[slot] = kNone;
  }
  if (slot < rejections_.size() && !rejections_[slot].ok()) {
    rejections_[slot] = sdk::Verdict::Success();
    --rejected_;
  }
  stale_ = true;
}

void NodeMetrics::ShowFigures(absl::Time now) {
  if (!shows_figures_) return;
  for (Column& column : columns_) {
    int64_t measured = 0, nodes = 0;
    const bool is_fresh = column.IsFresh(now);
    for (const sdk::Slot slot : cluster_.node_order()) {
      ++nodes;
      if (is_fresh && slot < column.values.size() && !std::isnan(column.values[slot])) ++measured;
    }
    const int64_t ambiguous = is_fresh ? column.ambiguous : 0;
    column.measured->Set(static_cast<double>(measured));
    column.ambiguous_nodes->Set(static_cast<double>(ambiguous));
    column.unmeasured->Set(static_cast<double>(std::max<int64_t>(0, nodes - measured - ambiguous)));
    column.unknown_nodes->Set(static_cast<double>(column.unknown));
    if (column.snapshot != nullptr)
      column.age->Set(absl::ToDoubleSeconds(now - column.snapshot->asked));
  }
}

}  // namespace outboard::prometheus
