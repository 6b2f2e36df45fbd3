#include "plugin_host/sdk/plugin_registry.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_parts.h"

namespace outboard::sdk {

absl::Status PluginRegistry::Add(PluginDescriptor descriptor) {
  if (descriptor.name.empty()) return absl::InvalidArgumentError("a plugin has no name");
  if (descriptor.extension_points.empty() || !descriptor.create) {
    return absl::InvalidArgumentError(
        absl::StrCat("plugin ", descriptor.name, " has no extension point or cannot be created"));
  }
  if (descriptor.signature) {
    if (const auto parts = PodParts::Parse(*descriptor.signature); !parts.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("plugin ", descriptor.name, ": signature: ", parts.status().message()));
    }
  }
  std::string name = descriptor.name;
  if (!descriptors_.emplace(name, std::move(descriptor)).second) {
    return absl::AlreadyExistsError(absl::StrCat("two plugins are named ", name));
  }
  return absl::OkStatus();
}

const PluginDescriptor* PluginRegistry::Find(absl::string_view name) const {
  auto it = descriptors_.find(name);
  return it == descriptors_.end() ? nullptr : &it->second;
}

}  // namespace outboard::sdk
