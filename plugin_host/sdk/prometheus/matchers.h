// Labels that samples must have, for example because one Prometheus has several clusters.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_MATCHERS_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_MATCHERS_H_

#include <map>
#include <string>

#include "plugin_host/sdk/args_reader.h"

namespace outboard::prometheus {

using Matchers = std::map<std::string, std::string>;

// A property of the object `prometheus` in a JSON schema.
inline constexpr char kMatchersProperty[] = R"json(
        "matchers": {"type": "object", "additionalProperties": {"type": "string"}, "description":
          "Labels that all samples must have, such as the cluster's."})json";

// Reads the argument `matchers` of the object `prometheus`; reports names that are not labels.
Matchers ReadMatchers(const sdk::ArgsObject& server);

// What follows a metric's name in a query: `{cluster="a"}`.
std::string SelectorOf(const Matchers& matchers);

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_MATCHERS_H_
