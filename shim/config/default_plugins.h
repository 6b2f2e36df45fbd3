// kube-scheduler's own plugins: the default set, and its merge with a profile's lists.
#ifndef OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_
#define OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "shim/config/config.h"

namespace outboard::config {

// kube-scheduler v1.36's default multiPoint list, with its order and weights. `where` is empty.
std::vector<PluginEntry> DefaultMultiPoint();

// Whether it is a plugin of kube-scheduler, in the default list or behind a feature gate.
bool IsUpstreamPlugin(absl::string_view name);
// Whether all hosts may lack this plugin: NotServed then rejects pods that need it.
bool MayBeUnserved(absl::string_view name);
// Removed from kube-scheduler, where using it is an error.
bool IsRemovedPlugin(absl::string_view name);
// Whether kube-scheduler has a typed NAMEArgs.
bool HasUpstreamArgs(absl::string_view name);

// Merges like kube-scheduler: disabled plugins are removed ("*": all), reconfigured ones keep their
// position, others are appended.
PluginSet MergePluginSet(const PluginSet& defaults, const PluginSet& custom);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_DEFAULT_PLUGINS_H_
