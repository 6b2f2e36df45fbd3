// From the configuration and what hosts say of themselves to plans that the scheduler can follow.
// Pure functions.
#ifndef OUTBOARD_SHIM_HOSTS_PLANS_H_
#define OUTBOARD_SHIM_HOSTS_PLANS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"
#include "shim/cycle/change_log.h"
#include "shim/cycle/custom_resources.h"
#include "shim/cycle/scheduler.h"

namespace outboard::hosts {

// What a host with the configured name said of itself.
using HostInfos = std::map<std::string, v1alpha1::GetHostInfoResponse>;

struct Plans {
  std::vector<cycle::ProfilePlan> profiles;
  // By host name; a host that serves no profile has none.
  std::map<std::string, v1alpha1::ConfigureRequest> configure;
  // As resolved, for showing.
  config::Profiles resolved;
};

// Resolves the profiles over what all hosts serve and gives each plugin of a profile to the first
// of `hosts` (names, in order of preference) that serves it. Errors: INVALID_ARGUMENT with file and
// line: what ResolveProfiles says, or that a plugin's points are served by different hosts only.
absl::StatusOr<Plans> MakePlans(const config::Config& config, const std::vector<std::string>& hosts,
                                const HostInfos& infos);

// What the host is asked from PreFilter to Score, by profile; profiles in which that is nothing are
// left out.
std::map<std::string, cycle::AlgorithmShare> SharesOf(const Plans& plans, const std::string& host);

// Problems of a Configure answer as one error that names file, line and field.
absl::Status ConfigureError(const config::Config& config, const config::Profiles& profiles,
                            const v1alpha1::ConfigureResponse& response);

// What plugins may have done with custom resources.
std::vector<cycle::CustomResourceRule> AllowedResources(
    const std::vector<config::CustomResourceRule>& configured);

// What the host's plugins read beyond what every host is sent: annotations, commands, arguments and
// variables of containers, custom resources.
cycle::ChangeEncoder::Fields NeededFields(const v1alpha1::GetHostInfoResponse& info);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PLANS_H_
