// Runs a plugin's text cases: a cluster, a pod, and the expected answers. The format is described
// in plugin_host/sdk/README.md.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_TESTING_CASE_RUNNER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_TESTING_CASE_RUNNER_H_

#include <string>

#include "plugin_host/sdk/plugin.h"

namespace outboard::sdk::testing {

// Runs every case of every *.case file in `folder` (relative to the repository root) as
// expectations of the running test. A folder without cases, or a case without expectations, is a
// failure.
void RunCases(const PluginDescriptor& descriptor, const std::string& folder);

}  // namespace outboard::sdk::testing

#endif  // OUTBOARD_PLUGIN_HOST_SDK_TESTING_CASE_RUNNER_H_
