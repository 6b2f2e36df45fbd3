// The plugins that an instance of the host serves: built-in ones and those of a directory.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_PLUGIN_SET_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_PLUGIN_SET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plugin_host/reload/manifest.h"
#include "plugin_host/reload/object_file.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::reload {

// The content of a directory at one moment, checked against its manifest, not loaded.
struct DirectoryContent {
  Manifest manifest;
  std::map<std::string, std::string> objects;  // by file name, the checked bytes

  // A digest of names and digests, 16 hexadecimal digits; the same for the same objects. Pure.
  std::string Digest() const;
};

// Errors: all with the file's name and the reason. UNAVAILABLE if a file cannot be read;
// FAILED_PRECONDITION for a `.so` that is not in the manifest or has another digest, a name in the
// manifest without a file, or a file that all users may write to; INVALID_ARGUMENT for the manifest
// itself. `without`: ignores the file of that name.
absl::StatusOr<DirectoryContent> ReadDirectory(const std::string& directory,
                                               const std::string& without = "");

// Threading: Load and the destructor on one thread; reading on any.
// Lifetime: owns descriptors and code. Users of its plugins must be destroyed before it; it then
//           unloads objects that no other set shares.
class PluginSet {
 public:
  // Adds the plugins to serve to the second registry.
  using Choose =
      std::function<absl::Status(const sdk::PluginRegistry& all, sdk::PluginRegistry* chosen)>;

  // Loads built-in plugins and those of the objects. An object's plugin replaces the built-in
  // plugin of the same name, which is logged; two objects must not have plugins of the same name.
  // All or nothing. `previous` (may be null): shares its identical objects instead of loading them
  // again.
  // Errors: FAILED_PRECONDITION or INVALID_ARGUMENT with the object's name and the reason.
  static absl::StatusOr<std::unique_ptr<PluginSet>> Load(const sdk::PluginRegistry& builtin,
                                                         const DirectoryContent& content,
                                                         const Choose& choose,
                                                         const PluginSet* previous);

  const sdk::PluginRegistry& registry() const { return registry_; }
  // Empty without objects.
  const std::string& digest() const { return digest_; }
  // Names of the plugins in objects, chosen or not.
  const std::vector<std::string>& from_objects() const { return from_objects_; }
  // The objects for people: `a.so@1a2b3c4d, b.so@…`; empty if there are none.
  const std::string& description() const { return description_; }

 private:
  PluginSet() = default;

  // In this order: the code outlives what it registered.
  std::map<std::string, std::shared_ptr<LoadedObject>> objects_;  // by digest
  sdk::PluginRegistry registry_;
  std::string digest_;
  std::string description_;
  std::vector<std::string> from_objects_;
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_PLUGIN_SET_H_
