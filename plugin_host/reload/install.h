// Changes the content of a plugin directory.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::reload {

// The content of a directory after the change.
struct Installed {
  std::string set_digest;            // DirectoryContent::Digest; empty: no objects left
  std::string previous_digest;       // before the change; also empty if it was unusable
  std::vector<std::string> plugins;  // in the objects
};

// Tests the object together with the directory's others, in this process, so that it fails here
// whenever the host would reject it; then copies it and its digest into the directory. Each file is
// written atomically, the manifest last. One change of a directory at a time, across processes.
//
// Threading: blocks.
// Errors: as ReadDirectory and PluginSet::Load; the directory is then unchanged.
absl::StatusOr<Installed> Install(const std::string& file, const std::string& directory,
                                  const sdk::PluginRegistry& builtin);

// Removes the object of this name from the directory, first from the manifest.
// Errors: NOT_FOUND if it does not exist.
absl::StatusOr<Installed> Remove(const std::string& name, const std::string& directory,
                                 const sdk::PluginRegistry& builtin);

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_
