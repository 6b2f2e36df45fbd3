#include "shim/diagnostics/host_report.h"

#include <nlohmann/json.hpp>

namespace outboard::diagnostics {
namespace {

using Json = nlohmann::ordered_json;

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

Json ToJson(const hosts::ShadowReport& shadow) {
  Json json = {{"cycles", shadow.cycles},
               {"placements", shadow.placements},
               {"placementsTold", shadow.compared_placements}};
  json["plugins"] = Json::object();
  for (const auto& [plugin, differences] : shadow.plugins) {
    json["plugins"][plugin] = {{"verdicts", differences.verdicts}, {"scores", differences.scores}};
  }
  json["examples"] = shadow.examples;
  return json;
}

}  // namespace

HostReport CollectHosts(const hosts::HostRegistry& hosts, absl::Time now, absl::Time wall) {
  HostReport report = {wall, "", std::nullopt, hosts.Describe()};
  // The start is a wall time of the host.
  for (hosts::HostRegistry::View& view : report.instances) view.since += wall - now;
  return report;
}

std::string ToJson(const HostReport& report) {
  Json out;
  out["time"] = TimeText(report.time);
  if (!report.api_server.empty()) out["apiServer"] = report.api_server;
  if (report.leader.has_value()) out["leader"] = *report.leader;
  out["instances"] = Json::array();
  for (const hosts::HostRegistry::View& view : report.instances) {
    Json json = {{"host", view.host},
                 {"instance", view.instance},
                 {"state", hosts::StateName(view.state)},
                 {"since", TimeText(view.since)},
                 {"why", view.why},
                 {"address", view.address},
                 {"build", view.build},
                 {"buildDigest", view.build_digest},
                 {"started", TimeText(view.started)},
                 {"usable", view.usable},
                 {"sentVersion", view.sent_version},
                 {"acknowledgedVersion", view.acknowledged_version},
                 {"failures", view.failures},
                 {"heldBack", view.held_back}};
    if (!view.pod.empty()) json["pod"] = view.pod;
    if (!view.warning.empty()) json["warning"] = view.warning;
    if (view.shadow.cycles > 0) json["shadow"] = ToJson(view.shadow);
    out["instances"].push_back(std::move(json));
  }
  // Build names come from hosts: invalid UTF-8 is replaced.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace outboard::diagnostics
