// Arguments of plugins that read Prometheus.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SERVER_ARGS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SERVER_ARGS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/args_reader.h"
#include "plugin_host/sdk/prometheus/client.h"

namespace outboard::prometheus {

// Properties of the object `prometheus` in a JSON schema.
inline constexpr char kServerProperties[] = R"json(
        "address": {"type": "string", "description":
          "http:// or https://, host, port, and an optional path."},
        "bearerTokenFile": {"type": "string", "description":
          "File with a token, read before each request; https only."},
        "caFile": {"type": "string", "description":
          "CA certificates for the server, PEM; default: the system's."},
        "timeout": {"type": "string", "default": "5s", "description":
          "Timeout of one reading, at most 1m."})json";

// All of these report invalid values to the object.
//
// Reads them.
ServerOptions ReadServer(const sdk::ArgsObject& object);
// Reads a list of 1 to 16 names of labels of samples that may name the node. The query itself uses
// `reserved`.
std::vector<std::string> ReadNodeLabels(const sdk::ArgsObject& object, const char* key,
                                        std::vector<std::string> otherwise,
                                        const std::vector<std::string>& reserved = {});
// Reads a duration within both bounds.
absl::Duration ReadDuration(const sdk::ArgsObject& object, const char* key,
                            absl::Duration otherwise, absl::Duration least, absl::Duration most);

// The syntax of Prometheus' label names.
bool IsLabelName(absl::string_view name);

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_SERVER_ARGS_H_
