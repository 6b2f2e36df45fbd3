#include "cli/plugin/replacement.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "shim/http/page_text.h"

namespace outboard::plugin_command {
namespace {

using Json = nlohmann::json;

// The set of objects: the part of a build digest after `+`.
std::string SetOf(const Json& instance) {
  const std::string digest = instance.value("buildDigest", "");
  const size_t plus = digest.rfind('+');
  return plus == std::string::npos ? "" : digest.substr(plus + 1);
}

absl::StatusOr<Json> InstancesOf(const std::string& page) {
  Json json = Json::parse(page, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("instances") || !json["instances"].is_array())
    return absl::InternalError("this version does not understand the shim's answer");
  return json["instances"];
}

std::string ShadowText(const Json& instance) {
  if (!instance.contains("shadow")) return "";
  const Json& shadow = instance["shadow"];
  const int64_t told = shadow.value("placementsTold", int64_t{0});
  std::string text = absl::StrCat(shadow.value("placements", int64_t{0}), " of ", told,
                                  " pods would have got another node");
  // Other hosts decide too.
  if (told == 0) {
    text =
        absl::StrCat(shadow.value("cycles", int64_t{0}), " cycles, which do not determine nodes");
  }
  const Json plugins = shadow.value("plugins", Json::object());
  for (const auto& [plugin, differences] : plugins.items()) {
    absl::StrAppend(&text, "; ", plugin, ": ", differences.value("verdicts", int64_t{0}),
                    " verdicts and ", differences.value("scores", int64_t{0}), " scores differ");
  }
  const Json examples = shadow.value("examples", Json::array());
  for (const Json& example : examples)
    if (example.is_string()) absl::StrAppend(&text, "\n  ", example.get<std::string>());
  return text;
}

}  // namespace

absl::StatusOr<Progress> ProgressOf(const std::string& hosts_page, const Awaited& awaited) {
  absl::StatusOr<Json> instances = InstancesOf(hosts_page);
  if (!instances.ok()) return instances.status();
  Progress progress;
  std::string newest;
  for (const Json& instance : *instances) {
    const std::string host = instance.value("host", "");
    if (SetOf(instance) != awaited.set) continue;
    if (!awaited.hosts.empty() && awaited.hosts.count(host) == 0) continue;
    // RFC 3339 in UTC with a fixed number of digits: compares as text.
    const std::string started = instance.value("started", "");
    if (started < newest) continue;
    const std::string state = instance.value("state", "");
    if (state != "serving" && http::TimeOf(started) < awaited.changed) continue;
    newest = started;
    progress.host = host;
    progress.instance = instance.value("instance", "");
    progress.state = state;
    progress.why = instance.value("why", "");
    progress.shadow = ShadowText(instance);
    progress.kind = progress.state == "serving" ? Progress::Kind::kServes
                    : progress.state == "refused" || progress.state == "quarantined"
                        ? Progress::Kind::kFailed
                        : Progress::Kind::kUnderWay;
  }
  return progress;
}

absl::StatusOr<std::set<std::string>> HostsWith(const std::string& hosts_page,
                                                const std::string& set) {
  absl::StatusOr<Json> instances = InstancesOf(hosts_page);
  if (!instances.ok()) return instances.status();
  std::set<std::string> hosts;
  for (const Json& instance : *instances) {
    if (SetOf(instance) == set) hosts.insert(instance.value("host", ""));
  }
  return hosts;
}

}  // namespace outboard::plugin_command
