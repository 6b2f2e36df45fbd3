#include "plugins/cost_optimized/args.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/matchers.h"
#include "plugin_host/sdk/prometheus/server_args.h"
#include "plugin_host/sdk/validation.h"
#include "plugin_host/sdk/workload_type.h"

namespace outboard::cost_optimized {
namespace {

// Around the properties of the server.
constexpr char kSchemaBeforeServer[] = R"json(
  "type": "object", "additionalProperties": false,
  "properties": {
    "formula": {"enum": ["relative", "classic"], "default": "relative", "description":
      "relative: what the pod costs on a node, compared with the other nodes; classic: 100 minus the cost of the node, and 200 for spot nodes."},
    "prices": {"type": "object", "additionalProperties": false, "description":
      "Prices of nodes without the label node-cost-per-hour.", "properties": {
        "file": {"type": "string", "description":
          "A price list; read again when it changes."},
        "period": {"type": "string", "default": "1m", "description":
          "Interval between readings of Prometheus, 1s to 1h."},
        "maxAge": {"type": "string", "default": "1h", "description":
          "Older prices from Prometheus are unknown, 1m to 168h."},
        "prometheus": {"type": "object", "additionalProperties": false, "required": ["address"],
          "description": "The server that scrapes OpenCost or Karpenter.", "properties": {)json";
constexpr char kSchemaAfterServer[] = R"json(}}}},
    "windows": {"type": "array", "maxItems": 32, "description":
      "Hours of the week that scale the cost of nodes; the first that covers the time counts.",
      "items": {"type": "object", "additionalProperties": false,
        "required": ["from", "to", "factor"], "properties": {
          "days": {"type": "string", "default": "*", "description":
            "Days on which it begins, as in cron: *, Mon-Fri, Sat,Sun, 1-5."},
          "from": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$",
            "description": "Time of day at which it begins."},
          "to": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$", "description":
            "Time of day at which it ends, at most 24:00; below from: on the following day."},
          "timezone": {"type": "string", "default": "UTC",
            "description": "IANA name of the time zone, such as Europe/Berlin."},
          "factor": {"type": "number", "minimum": 0, "maximum": 1000, "description":
            "Multiplies the cost of nodes in this window; below 1: cheap hours."}}}},
    "spotLabels": {"type": "object", "additionalProperties": {"type": "string"}, "description":
      "Further node labels, each with the value that means spot."})json";

Args::Formula ReadFormula(const sdk::ArgsObject& root) {
  const std::string text = root.String("formula", "relative");
  if (text == "classic") return Args::Formula::kClassic;
  if (text != "relative") root.Problem("formula", sdk::NotSupported(text, {"relative", "classic"}));
  return Args::Formula::kRelative;
}

// Relative paths would depend on where the host was started.
std::string ReadPath(const sdk::ArgsObject& object, const char* key) {
  const std::string path = object.String(key, "");
  if (!path.empty() && path[0] != '/')
    object.Problem(key, sdk::InvalidValue(path, "must be an absolute path"));
  return path;
}

}  // namespace

std::string ArgsSchema() {
  return absl::StrCat("{", kSchemaBeforeServer, prometheus::kServerProperties, ",",
                      prometheus::kMatchersProperty, kSchemaAfterServer, ",\n    ", kSpotSchema,
                      ",\n    ", sdk::WorkloadTypesSchema(), ",\n    ",
                      sdk::kGpuResourceNamesSchema, "}}");
}

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  args.formula = ReadFormula(root);
  args.hours = CheapHours::Read(root);
  const sdk::ArgsObject labels = root.Object("spotLabels");
  for (const std::string& key : labels.Keys()) args.spot_labels[key] = labels.String(key, "");
  args.spot = SpotRules::Read(root);
  args.gpus = sdk::GpuResources::Read(root);
  const sdk::ArgsObject prices = root.Object("prices");
  args.price_list = ReadPath(prices, "file");
  args.reader.period = prometheus::ReadDuration(prices, "period", args.reader.period,
                                                absl::Seconds(1), absl::Hours(1));
  args.max_price_age = prometheus::ReadDuration(prices, "maxAge", args.max_price_age,
                                                absl::Minutes(1), absl::Hours(168));
  if (prices.Has("prometheus")) {
    const sdk::ArgsObject server = prices.Object("prometheus");
    args.reader.server = prometheus::ReadServer(server);
    args.reader.matchers = prometheus::ReadMatchers(server);
  }
  return args;
}

}  // namespace outboard::cost_optimized
