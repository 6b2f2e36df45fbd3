// Builds the scheduler's plans from the configuration and the hosts' infos. Pure functions.
#ifndef OUTBOARD_SHIM_HOSTS_PLANS_H_
#define OUTBOARD_SHIM_HOSTS_PLANS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"
#include "shim/framework/custom_resources.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::hosts {

// The info of each host, by its configured name.
using HostInfos = std::map<std::string, v1beta1::GetHostInfoResponse>;

struct Plans {
  std::vector<framework::ProfilePlan> profiles;
  // By host name; without hosts that serve no profile.
  std::map<std::string, v1beta1::ConfigureRequest> configure;
  // For display.
  config::Profiles resolved;
};

// Resolves the profiles over the plugins of all hosts and assigns each plugin of a profile to the
// first of `hosts` (names, in order of preference) that serves it.
// Errors: INVALID_ARGUMENT with file and line: those of ResolveProfiles, or no single host serves
// all of a plugin's points.
absl::StatusOr<Plans> MakePlans(const config::Config& config, const std::vector<std::string>& hosts,
                                const HostInfos& infos);

// The host's part from PreFilter to Score, by profile; only profiles in which it has one.
std::map<std::string, framework::HostProfile> SharesOf(const Plans& plans, const std::string& host);

// Whether the host's configuration is the same in both.
bool SameConfigure(const Plans& a, const Plans& b, const std::string& host);

// Problems of a Configure answer as one error with file, line and field; warnings are none.
absl::Status ConfigureError(const config::Config& config, const config::Profiles& profiles,
                            const v1beta1::ConfigureResponse& response);
// The warnings of a Configure answer, in the same form; the configuration is in force.
std::vector<std::string> ConfigureWarnings(const config::Config& config,
                                           const config::Profiles& profiles,
                                           const v1beta1::ConfigureResponse& response);

// Which writes of custom resources plugins may request.
std::vector<framework::CustomResourceRule> AllowedResources(
    const std::vector<config::CustomResourceRule>& configured);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PLANS_H_
