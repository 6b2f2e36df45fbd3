// The arguments of NodeMetrics.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/node_metrics.h"
#include "plugin_host/sdk/prometheus/server_args.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::prometheus {
namespace {

constexpr size_t kMaxMetrics = 16;
constexpr size_t kMaxNameBytes = 63;
constexpr size_t kMaxQueryBytes = 8192;
constexpr double kMaxWeight = 1000;

constexpr char kMetricsProperty[] = R"json(
    "metrics": {"type": "array", "maxItems": 16, "description": "Measured values of nodes.",
      "items": {"type": "object", "additionalProperties": false,
        "required": ["name", "query", "direction"], "properties": {
          "name": {"type": "string", "description":
            "A name for reasons, metrics and logs: letters, digits, _ and -."},
          "query": {"type": "string", "description": "PromQL that gives one sample per node."},
          "nodeLabels": {"type": "array", "minItems": 1, "maxItems": 16,
            "items": {"type": "string"}, "default": ["Hostname", "node", "kubernetes_node",
              "nodename", "exported_node", "hostname", "instance"],
            "description": "Labels of samples that may name the node; the first that matches."},
          "direction": {"type": "string", "enum": ["lower", "higher"], "description":
            "Which values are better."},
          "range": {"type": "object", "additionalProperties": false, "required": ["from", "to"],
            "properties": {
              "from": {"type": "number", "description": "Values up to this are equal."},
              "to": {"type": "number", "description": "Values from this on are equal."}},
            "description": "Without it, nodes are compared with each other."},
          "weight": {"type": "number", "minimum": 0, "maximum": 1000, "default": 1,
            "description": "Weight among the metrics."},
          "maxAge": {"type": "string", "default": "2m", "description":
            "How long a reading counts, and the age limit of its samples, 1s to 1h."},
          "period": {"type": "string", "default": "15s", "description":
            "Interval between readings, 1s to 1h."},
          "filter": {"type": "object", "additionalProperties": false, "properties": {
              "above": {"type": "number", "description": "Rejects nodes with a larger value."},
              "below": {"type": "number", "description": "Rejects nodes with a smaller value."}},
            "description": "Bounds; nodes without a value pass."}}}})json";

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         absl::ascii_isalpha(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '-';
         });
}

void CheckName(const sdk::ArgsObject& object, const std::string& name,
               const std::vector<std::string>& reserved, const std::vector<MetricOptions>& others) {
  const bool is_reserved = std::find(reserved.begin(), reserved.end(), name) != reserved.end();
  if (name.empty()) {
    object.Problem("name", sdk::RequiredValue("must name the metric in reasons and logs"));
  } else if (!IsName(name) || is_reserved) {
    object.Problem("name",
                   sdk::InvalidValue(name, is_reserved ? "is the name of a built-in term"
                                                       : "must be a letter, then letters, digits, "
                                                         "_ and -, at most 63 in all"));
  } else if (std::any_of(others.begin(), others.end(),
                         [&](const MetricOptions& other) { return other.name == name; })) {
    object.Problem("name", sdk::DuplicateValue(name));
  }
}

void CheckQuery(const sdk::ArgsObject& object, const std::string& query) {
  if (absl::StripAsciiWhitespace(query).empty()) {
    object.Problem("query", sdk::RequiredValue("must be PromQL with one sample per node"));
  } else if (query.size() > kMaxQueryBytes || query.find('\0') != std::string::npos) {
    object.Problem("query", absl::StrCat("Too long: may not be more than ", kMaxQueryBytes,
                                         " bytes, without NUL"));
  }
}

std::optional<MetricOptions::Range> ReadRange(const sdk::ArgsObject& object) {
  if (!object.Has("range")) return std::nullopt;
  const sdk::ArgsObject field = object.Object("range");
  for (const char* key : {"from", "to"}) {
    if (!field.Has(key)) field.Problem(key, sdk::RequiredValue("must be a number"));
  }
  const MetricOptions::Range range{field.Double("from", 0), field.Double("to", 1)};
  if (field.Has("from") && field.Has("to") && !(range.from < range.to))
    field.Problem("to", absl::StrCat("Invalid value: ", range.to, ": must be greater than from"));
  return range;
}

void ReadFilter(const sdk::ArgsObject& object, MetricOptions* metric) {
  if (!object.Has("filter")) return;
  const sdk::ArgsObject field = object.Object("filter");
  if (field.Has("above")) metric->above = field.Double("above", 0);
  if (field.Has("below")) metric->below = field.Double("below", 0);
  if (metric->above && metric->below && *metric->above < *metric->below)
    field.Problem("above", absl::StrCat("Invalid value: ", *metric->above,
                                        ": less than below: every node would be rejected"));
}

MetricOptions ReadMetric(const sdk::ArgsObject& object, const std::vector<std::string>& reserved,
                         const std::vector<MetricOptions>& others) {
  MetricOptions metric;
  metric.name = object.String("name", "");
  CheckName(object, metric.name, reserved, others);
  metric.query = object.String("query", "");
  CheckQuery(object, metric.query);
  metric.node_labels = ReadNodeLabels(object, "nodeLabels", metric.node_labels);
  const std::string direction = object.String("direction", "");
  metric.higher_is_better = direction == "higher";
  if (direction.empty()) {
    object.Problem("direction", sdk::RequiredValue("lower or higher values are better"));
  } else if (direction != "lower" && direction != "higher") {
    object.Problem("direction", sdk::InvalidValue(direction, "must be lower or higher"));
  }
  metric.range = ReadRange(object);
  metric.weight = object.Double("weight", metric.weight);
  if (!(metric.weight >= 0 && metric.weight <= kMaxWeight))
    object.Problem(
        "weight", absl::StrCat("Invalid value: ", metric.weight, ": not in valid range [0, 1000]"));
  metric.max_age = ReadDuration(object, "maxAge", metric.max_age, absl::Seconds(1), absl::Hours(1));
  metric.period = ReadDuration(object, "period", metric.period, absl::Seconds(1), absl::Hours(1));
  if (metric.max_age < metric.period)
    object.Problem("maxAge", absl::StrCat("Invalid value: ", absl::FormatDuration(metric.max_age),
                                          ": less than period: values would end before the next "
                                          "reading"));
  ReadFilter(object, &metric);
  return metric;
}

}  // namespace

std::string MetricsSchema() {
  return absl::StrCat(R"json(
    "prometheus": {"type": "object", "additionalProperties": false,
      "description": "The server that answers the queries.", "properties": {)json",
                      kServerProperties, "}},", kMetricsProperty);
}

MetricsOptions ReadMetrics(const sdk::ArgsObject& root, const std::vector<std::string>& reserved) {
  MetricsOptions options;
  const std::vector<sdk::ArgsObject> metrics = root.Objects("metrics");
  if (metrics.size() > kMaxMetrics) {
    root.Problem("metrics", absl::StrCat("Too many: ", metrics.size(), ": must have at most ",
                                         kMaxMetrics, " items"));
  }
  for (const sdk::ArgsObject& metric : metrics)
    options.metrics.push_back(ReadMetric(metric, reserved, options.metrics));
  const sdk::ArgsObject server = root.Object("prometheus");
  if (root.Has("prometheus") || !metrics.empty()) options.server = ReadServer(server);
  return options;
}

}  // namespace outboard::prometheus
