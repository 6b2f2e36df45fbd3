// Whether the configuration and this shim give a plugin what it declares.
#ifndef OUTBOARD_SHIM_HOSTS_PLUGIN_DECLARATIONS_H_
#define OUTBOARD_SHIM_HOSTS_PLUGIN_DECLARATIONS_H_

#include <string>
#include <vector>

#include "outboard/v1beta1/plugin_host.pb.h"
#include "shim/config/config.h"

namespace outboard::hosts {

// Whether the rule allows all writes that the plugin wants. Pure.
bool Allows(const config::CustomResourceRule& rule, const v1beta1::DeclaredResource& wanted);

// Adds to `problems` what a plugin of the profile needs and does not get: one line for each custom
// resource that the configuration does not allow, and one for a field that the shim cannot send or
// may not. Logs optional writes that are not allowed.
void CheckDeclarations(const config::Config& config, const std::string& profile,
                       const v1beta1::PluginInfo& plugin, std::vector<std::string>* problems);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_PLUGIN_DECLARATIONS_H_
