// kube-scheduler's own plugins: which run by default, and how a profile's lists change that.
#ifndef OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_
#define OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "shim/config/config.h"

namespace outboard::config {

// kube-scheduler v1.36's default multiPoint list, in its order and with its weights. `where` is
// empty.
std::vector<PluginEntry> DefaultMultiPoint();

// One of kube-scheduler's plugins, in the default list or behind a feature gate.
bool IsUpstreamPlugin(absl::string_view name);
// One of those that may be missing from every host: pods that need it are refused by NotServed
// instead.
bool MayBeUnserved(absl::string_view name);
// Removed from kube-scheduler; naming it is an error there.
bool IsRemovedPlugin(absl::string_view name);
// Whether kube-scheduler has a typed NAMEArgs.
bool HasUpstreamArgs(absl::string_view name);

// Changes a default list as kube-scheduler does: disabled ones go ("*": all), reconfigured ones
// keep their place, others are appended.
PluginSet MergePluginSet(const PluginSet& defaults, const PluginSet& custom);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_
