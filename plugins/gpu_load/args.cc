#include "plugins/gpu_load/args.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::gpu_load {
namespace {

// NVIDIA's XIDs that mean: the GPU does not work until it is reset or repaired. Excluded: errors
// that a program causes (13, 31, 43, 45, 68, 109), and codes that only report (63, 92, 94, 154).
constexpr int64_t kVetoCodes[] = {46, 48, 62, 64, 74, 79, 95, 119, 120, 140, 143};

constexpr int64_t kMostCode = 65535;

}  // namespace

const char kArgsSchema[] = R"json({
  "type": "object", "additionalProperties": false, "required": ["prometheus"],
  "properties": {
    "prometheus": {"type": "object", "additionalProperties": false, "required": ["address"],
      "description": "The server that scrapes DCGM's exporters.", "properties": {
        "address": {"type": "string", "description":
          "http:// or https://, host, port, and an optional path."},
        "bearerTokenFile": {"type": "string", "description":
          "File with a token, read before each request; https only."},
        "caFile": {"type": "string", "description":
          "CA certificates for the server, PEM; default: the system's."},
        "timeout": {"type": "string", "default": "5s", "description":
          "Timeout of one reading, at most 1m."},
        "matchers": {"type": "object", "additionalProperties": {"type": "string"}, "description":
          "Labels that all samples must have, such as the cluster's."}}},
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

namespace {

absl::Duration DurationWithin(const sdk::ArgsObject& object, const char* key,
                              absl::Duration otherwise, absl::Duration least, absl::Duration most) {
  const absl::Duration value = object.Duration(key, otherwise);
  if (value < least || value > most) {
    object.Problem(
        key, absl::StrCat("Invalid value: ", absl::FormatDuration(value), ": not in valid range [",
                          absl::FormatDuration(least), ", ", absl::FormatDuration(most), "]"));
    return otherwise;
  }
  return value;
}

double NumberWithin(const sdk::ArgsObject& object, const char* key, double otherwise, double most) {
  const double value = object.Double(key, otherwise);
  if (!(value >= 0 && value <= most)) {
    object.Problem(key,
                   absl::StrCat("Invalid value: ", value, ": not in valid range [0, ", most, "]"));
    return otherwise;
  }
  return value;
}

// The syntax of Prometheus' label names.
bool IsLabelName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

void ReadServer(const sdk::ArgsObject& object, ServerOptions* server) {
  server->address = object.String("address", "");
  server->bearer_token_file = object.String("bearerTokenFile", "");
  server->ca_file = object.String("caFile", "");
  server->timeout =
      DurationWithin(object, "timeout", server->timeout, absl::Milliseconds(1), absl::Minutes(1));
  const std::string& address = server->address;
  const bool is_https = absl::StartsWith(address, "https://");
  const size_t host = address.find("://");
  if (address.empty()) {
    object.Problem("address", sdk::RequiredValue("must be the address of Prometheus, such as "
                                                 "http://prometheus.monitoring:9090"));
  } else if ((!is_https && !absl::StartsWith(address, "http://")) || host + 3 >= address.size() ||
             address[host + 3] == '/' ||
             !std::all_of(address.begin(), address.end(),
                          [](unsigned char c) { return absl::ascii_isgraph(c); }) ||
             address.find_first_of("?#@") != std::string::npos) {
    object.Problem("address", sdk::InvalidValue(address,
                                                "must be http://HOST:PORT or https://HOST:PORT, "
                                                "with a path if it has one"));
  } else if (!is_https && !server->bearer_token_file.empty()) {
    object.Problem("bearerTokenFile", sdk::Forbidden("a token is sent over https only"));
  }
}

}  // namespace

Args ReadArgs(const sdk::ArgsObject& root) {
  Args args;
  ReaderOptions& reader = args.reader;
  const sdk::ArgsObject prometheus = root.Object("prometheus");
  ReadServer(prometheus, &reader.server);
  const sdk::ArgsObject matchers = prometheus.Object("matchers");
  for (const std::string& label : matchers.Keys()) {
    reader.query.matchers[label] = matchers.String(label, "");
    if (!IsLabelName(label))
      matchers.Problem(label, sdk::InvalidValue(label, "must be the name of a Prometheus label"));
  }
  reader.period = DurationWithin(root, "period", reader.period, absl::Seconds(1), absl::Hours(1));
  reader.query.max_sample_age = DurationWithin(root, "maxSampleAge", reader.query.max_sample_age,
                                               absl::Seconds(1), absl::Hours(1));
  const std::vector<std::string> labels = root.Strings("nodeLabels", reader.query.node_labels);
  if (labels.empty() || labels.size() > 16)
    root.Problem("nodeLabels", sdk::InvalidValue(static_cast<int64_t>(labels.size()),
                                                 "must have 1 to 16 entries"));
  for (size_t i = 0; i < labels.size(); ++i) {
    // The query itself uses these labels.
    if (!IsLabelName(labels[i]) || labels[i] == "outboard" || labels[i] == "gpu" ||
        labels[i] == "GPU_I_ID")
      root.Problem(absl::StrCat("nodeLabels[", i, "]"),
                   sdk::InvalidValue(labels[i], "must be a Prometheus label that can name a node"));
    if (std::count(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i), labels[i]) > 0)
      root.Problem(absl::StrCat("nodeLabels[", i, "]"), sdk::DuplicateValue(labels[i]));
  }
  reader.query.node_labels = labels;
  args.settling_time = DurationWithin(root, "settlingTime", args.settling_time,
                                      absl::ZeroDuration(), absl::Hours(1));
  args.estimated_use = NumberWithin(root, "estimatedUsePercent", 100, 100) / 100;
  args.memory_weight = NumberWithin(root, "memoryWeight", args.memory_weight, 1);
  const sdk::ArgsObject xid = root.Object("xid");
  reader.veto_for =
      DurationWithin(xid, "vetoFor", reader.veto_for, absl::ZeroDuration(), absl::Hours(24));
  std::vector<int64_t> codes(std::begin(kVetoCodes), std::end(kVetoCodes));
  if (xid.Has("vetoCodes")) codes = xid.Ints("vetoCodes");
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] < 1 || codes[i] > kMostCode)
      xid.Problem(absl::StrCat("vetoCodes[", i, "]"),
                  sdk::InvalidValue(codes[i], "not in valid range [1, 65535]"));
  }
  reader.veto_codes.insert(codes.begin(), codes.end());
  args.gpus = sdk::GpuResources::Read(root);
  return args;
}

}  // namespace outboard::gpu_load
