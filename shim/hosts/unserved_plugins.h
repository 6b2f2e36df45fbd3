// Which plugins of the configuration no connected host serves.
#ifndef OUTBOARD_SHIM_HOSTS_UNSERVED_PLUGINS_H_
#define OUTBOARD_SHIM_HOSTS_UNSERVED_PLUGINS_H_

#include <string>

#include "shim/config/config.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {

// `profile "a": X, Y; profile "b": X`, for a log; empty: hosts serve all plugins. Pure.
std::string UnservedPlugins(const config::Config& config, const HostInfos& infos);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_UNSERVED_PLUGINS_H_
