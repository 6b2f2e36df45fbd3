// Whether a profile's plugins at the points of groups can have an effect.
#ifndef OUTBOARD_SHIM_HOSTS_GROUP_POINTS_H_
#define OUTBOARD_SHIM_HOSTS_GROUP_POINTS_H_

#include <string>
#include <vector>

#include "shim/config/config.h"
#include "shim/framework/profile_plan.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {

// A plugin at placementGenerate needs a host that can be asked for single steps of a group's plan
// (GROUP_PLACEMENTS), and that serves all plugins of the profile from preFilter to score; else
// `problems` gets a line. `warnings` gets a line if the shim never asks that host for groups,
// because no plugin at permit can hold their members. Both with file and line. Pure.
void CheckGroupPoints(const config::Config& config, const framework::ProfilePlan& plan,
                      const HostInfos& infos, std::vector<std::string>* problems,
                      std::vector<std::string>* warnings);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_GROUP_POINTS_H_
