#include "plugins/gpu_load/args.h"

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/prometheus/matchers.h"
#include "plugin_host/sdk/prometheus/server_args.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::gpu_load {
namespace {

// NVIDIA's XIDs that mean: the GPU does not work until it is reset or repaired. Excluded: errors
// that a program causes (13, 31, 43, 45, 68, 109), and codes that only report (63, 92, 94, 154).
constexpr int64_t kVetoCodes[] = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143};

constexpr int64_t kMostCode = 65535;

}  // namespace

namespace {

// Around the properties of the server.
constexpr char kSchemaBeforeServer[] = R"json({
  "type": "object", "additionalProperties": false, "required": ["prometheus"],
  "properties": {
    "prometheus": {"type": "object", "additionalProperties": false, "required": ["address"],
      "description": "The server that scrapes DCGM's exporters.", "properties": {)json";

constexpr char kSchemaAfterServer[] = R"json(}},
    "period": {"type": "string", "default": "15s", "description":
      "Interval between readings, 1s to 1h."},
    "maxSampleAge": {"type": "string", "default": "2m", "description":
      "Older samples are ignored, 1s to 1h; Prometheus itself returns none older than 5m."},
    "nodeLabels": {"type": "array", "minItems": 1, "maxItems": 16, "items": {"type": "string"},
      "default": ["Hostname", "node", "kubernetes_node", "nodename", "exported_node", "hostname",
        "instance"],
      "description": "Labels of samples that may name the node; the first that matches counts."},
    "settlingTime": {"type": "string", "default": "1m", "description":
      "How long after its start a pod is missing from samples, 0s to 1h."},
    "estimatedUsePercent": {"type": "number", "minimum": 0, "maximum": 100, "default": 100,
      "description": "Assumed use of each of a pod's GPUs and their memory until samples show it."},
    "memoryWeight": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.3,
      "description": "Weight of free memory in the score; the rest is idle time."},
    "xid": {"type": "object", "additionalProperties": false, "properties": {
      "vetoCodes": {"type": "array", "maxItems": 256, "items": {"type": "integer", "minimum": 1,
        "maximum": 65535}, "default": [46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143],
        "description": "XIDs that keep pods with GPUs off the node; empty: none."},
      "vetoFor": {"type": "string", "default": "5m", "description":
        "How long after the GPU stops showing it, 0s to 24h."}}},
    "gpuResourceNames": {"type": "array", "minItems": 1, "items": {"type": "string"},
      "default": ["nvidia.com/gpu"], "description": "Extended resources that are GPUs."}}})json";

double NumberWithin(const sdk::ArgsObject& object, const char* key, double otherwise, double most) {
  const double value = object.Double(key, otherwise);
  if (!(value >= 0 && value <= most)) {
    object.Problem(key,
                   absl::StrCat("Invalid value: ", value, ": not in valid range [0, ", most, "]"));
    return otherwise;
  }
  return value;
}

}  // namespace

std::string ArgsSchema() {
  return absl::StrCat(kSchemaBeforeServer, prometheus::kServerProperties, ",",
                      prometheus::kMatchersProperty, kSchemaAfterServer);
}

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  ReaderOptions& reader = args.reader;
  const sdk::ArgsObject server = root.Object("prometheus");
  reader.server = prometheus::ReadServer(server);
  reader.query.matchers = prometheus::ReadMatchers(server);
  reader.period =
      prometheus::ReadDuration(root, "period", reader.period, absl::Seconds(1), absl::Hours(1));
  reader.query.max_sample_age = prometheus::ReadDuration(
      root, "maxSampleAge", reader.query.max_sample_age, absl::Seconds(1), absl::Hours(1));
  // The query itself uses the reserved labels.
  reader.query.node_labels = prometheus::ReadNodeLabels(
      root, "nodeLabels", reader.query.node_labels, {"outboard", "gpu", "GPU_I_ID"});
  args.settling_time = prometheus::ReadDuration(root, "settlingTime", args.settling_time,
                                                absl::ZeroDuration(), absl::Hours(1));
  args.estimated_use = NumberWithin(root, "estimatedUsePercent", 100, 100) / 100;
  args.memory_weight = NumberWithin(root, "memoryWeight", args.memory_weight, 1);
  const sdk::ArgsObject xid = root.Object("xid");
  reader.veto_for = prometheus::ReadDuration(xid, "vetoFor", reader.veto_for, absl::ZeroDuration(),
                                             absl::Hours(24));
  std::vector<int64_t> codes(std::begin(kVetoCodes), std::end(kVetoCodes));
  if (xid.Has("vetoCodes")) codes = xid.Ints("vetoCodes");
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 1 || codes[i] > kMostCode)
      xid.Problem(absl::StrCat("vetoCodes[", i, "]"),
                  sdk::InvalidValue(codes[i], "not in valid range [1, 65535]"));
  }
  reader.veto_codes.insert(codes.begin(), codes.end());
  args.gpus = sdk::GpuResources::Read(root, /*counts_claims=*/false);
  return args;
}

}  // namespace outboard::gpu_load
