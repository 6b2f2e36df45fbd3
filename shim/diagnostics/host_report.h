// The hosts at one moment, for users and tests: the serving instances, the others, and the
// differences that a shadow comparison found.
#ifndef OUTBOARD_SHIM_DIAGNOSTICS_HOST_REPORT_H_
#define OUTBOARD_SHIM_DIAGNOSTICS_HOST_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/hosts/host_registry.h"

namespace outboard::diagnostics {

struct HostReport {
  absl::Time time;
  // Since when and why the API server does not answer. Empty if it does.
  std::string api_server;
  // On a replica that does not lead: the lease's holder, "" if none holds it.
  std::optional<std::string> leader;
  std::vector<hosts::HostRegistry::View> instances;
};

// `wall` is the wall time at `now`: readers get wall times.
//
// Threading: scheduling thread.
HostReport CollectHosts(const hosts::HostRegistry& hosts, absl::Time now, absl::Time wall);

// One object: `time`, `apiServer` unless it is empty, `leader` if it is set, `instances`; times in
// RFC 3339.
// Threading: any thread.
std::string ToJson(const HostReport& report);

}  // namespace outboard::diagnostics

#endif  // OUTBOARD_SHIM_DIAGNOSTICS_HOST_REPORT_H_
