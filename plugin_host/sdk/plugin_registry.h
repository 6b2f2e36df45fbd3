// The plugins that a host can run.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_REGISTRY_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_REGISTRY_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/plugin.h"

namespace outboard::sdk {

// Descriptors by name. Filled once, at start.
//
// Threading: thread-compatible.
// Lifetime: owns the descriptors.
// Errors: a duplicate name; a descriptor without a name, a point or `create`.
class PluginRegistry {
 public:
  absl::Status Add(PluginDescriptor descriptor);
  const PluginDescriptor* Find(absl::string_view name) const;
  const std::map<std::string, PluginDescriptor, std::less<>>& descriptors() const {
    return descriptors_;
  }

 private:
  std::map<std::string, PluginDescriptor, std::less<>> descriptors_;
};

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PLUGIN_REGISTRY_H_
