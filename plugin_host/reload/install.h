// Changes what a plugin directory holds.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::reload {

// What a directory holds now.
struct Installed {
  std::string set_digest;       // DirectoryContent::Digest; empty: no objects any more
  std::string previous_digest;  // the same of before; empty also if nothing there could be used
  std::vector<std::string> plugins;  // that the objects have
};

// Tries the object out together with the directory's others, in this process, so that whatever the
// host would refuse is refused here; then puts it and its digest into the directory. Each file is
// there as a whole or not at all, and the manifest comes last. One change of a directory at a time,
// across processes.
//
// Threading: blocks. Errors: as ReadDirectory and PluginSet::Load: nothing has changed.
absl::StatusOr<Installed> Install(const std::string& file, const std::string& directory,
                                  const sdk::PluginRegistry& builtin);

// Takes the object of this name out of the directory; the manifest goes first. Errors: NOT_FOUND if
// there is none.
absl::StatusOr<Installed> Remove(const std::string& name, const std::string& directory,
                                 const sdk::PluginRegistry& builtin);

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_INSTALL_H_
