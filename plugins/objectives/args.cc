#include "plugins/objectives/args.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::objectives {
namespace {

// Without the properties of metrics, and the end.
constexpr char kOwnSchema[] = R"json({
  "type": "object", "additionalProperties": false,
  "properties": {
    "weights": {"type": "object", "additionalProperties": false,
      "description": "Weights of the terms, for pods without outboard/objectives.",
      "properties": {
        "cost": {"type": "number", "minimum": 0, "maximum": 1000, "default": 1,
          "description": "Prefers cheap nodes."},
        "distance": {"type": "number", "minimum": 0, "maximum": 1000, "default": 1,
          "description": "Prefers nodes near the pods and data that the pod names."},
        "gpu": {"type": "number", "minimum": 0, "maximum": 1000, "default": 1,
          "description": "Prefers nodes whose GPUs are in use, for pods that request GPUs."},
        "cpu": {"type": "number", "minimum": 0, "maximum": 1000, "default": 1,
          "description": "Prefers nodes whose CPU is in use."}}},
    "levels": {"type": "array", "maxItems": 8, "items": {"type": "string"},
      "default": ["topology.kubernetes.io/rack", "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region"],
      "description": "Node labels of the network levels, the nearest first."},
    "costLabel": {"type": "string", "default": "node-cost-per-hour",
      "description": "Node label with the cost per hour."},
    "regionLabel": {"type": "string", "default": "topology.kubernetes.io/region",
      "description": "Node label that outboard/allowed-regions refers to."},
    "licences": {"type": "object",
      "additionalProperties": {"type": "integer", "minimum": 0, "maximum": 1000000000},
      "description": "Number of each licence in the whole cluster."},
    "gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."},)json";

constexpr int64_t kMaxLicences = 1000000000;
constexpr size_t kMaxLevels = 8;

std::string ReadLabelKey(const sdk::ArgsObject& root, const char* key,
                         const std::string& default_value) {
  const std::string label = root.String(key, default_value);
  for (const std::string& error : sdk::QualifiedNameErrors(label))
    root.Problem(key, sdk::InvalidValue(label, error));
  return label;
}

}  // namespace

std::string ArgsSchema() { return absl::StrCat(kOwnSchema, prometheus::MetricsSchema(), "}}"); }

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  const sdk::ArgsObject weights = root.Object("weights");
  for (const char* name : {"cost", "distance", "gpu", "cpu"}) {
    double* weight = args.weights.Find(name);
    *weight = weights.Double(name, *weight);
    if (!(*weight >= 0 && *weight <= kMaxWeight)) {
      weights.Problem(name,
                      absl::StrCat("Invalid value: ", *weight, ": not in valid range [0, 1000]"));
    }
  }
  args.levels = root.Strings("levels", args.levels);
  if (args.levels.size() > kMaxLevels) {
    root.Problem("levels", absl::StrCat("Too many: ", args.levels.size(), ": must have at most ",
                                        kMaxLevels, " items"));
  }
  for (size_t i = 0; i < args.levels.size(); ++i) {
    const std::string field = absl::StrCat("levels[", i, "]");
    for (const std::string& error : sdk::QualifiedNameErrors(args.levels[i]))
      root.Problem(field, sdk::InvalidValue(args.levels[i], error));
    const auto before = args.levels.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(args.levels.begin(), before, args.levels[i]) != before)
      root.Problem(field, sdk::DuplicateValue(args.levels[i]));
  }
  args.cost_label = ReadLabelKey(root, "costLabel", args.cost_label);
  args.region_label = ReadLabelKey(root, "regionLabel", args.region_label);
  const sdk::ArgsObject licences = root.Object("licences");
  for (const std::string& name : licences.Keys()) {
    const int64_t count = licences.Int(name, 0);
    if (count < 0 || count > kMaxLicences)
      licences.Problem(name, sdk::InvalidValue(count, "not in valid range [0, 1000000000]"));
    args.licences[name] = count;
  }
  args.gpus = sdk::GpuResources::Read(root, /*counts_claims=*/false);
  args.metrics = prometheus::ReadMetrics(root, {"cost", "distance", "gpu", "cpu"});
  for (const prometheus::MetricOptions& metric : args.metrics.metrics)
    args.weights.metrics.emplace_back(metric.name, metric.weight);
  return args;
}

}  // namespace outboard::objectives
