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

// What a directory holds at one moment, checked against its manifest, none of it loaded.
struct DirectoryContent {
  Manifest manifest;
  std::map<std::string, std::string> objects;  // by file name, the bytes that were checked

  // Of names and digests, 16 hexadecimal digits; the same for the same objects. Pure.
  std::string Digest() const;
};

// Errors: all with the file's name and the reason, for people. UNAVAILABLE if something cannot be
// read; FAILED_PRECONDITION for a `.so` that the manifest does not name, or whose digest is another
// one, a name of the manifest without a file, or a file that everybody may write to;
// INVALID_ARGUMENT for the manifest itself.
// `without`: as if there were no file of that name.
absl::StatusOr<DirectoryContent> ReadDirectory(const std::string& directory,
                                               const std::string& without = "");

// Threading: Load and the destructor on one thread; reading on any.
// Lifetime:  owns descriptors and code. Whoever runs its plugins must be gone before it; then
// objects
//            that no other set shares are unloaded.
class PluginSet {
 public:
  // Puts those plugins into the second registry that are to be served.
  using Choose =
      std::function<absl::Status(const sdk::PluginRegistry& all, sdk::PluginRegistry* chosen)>;

  // Built-in plugins and those of the objects. An object's plugin takes the place of the built-in
  // one of its name, which is logged; two objects must not have plugins of one name. All or
  // nothing. `previous` (may be null): what is the same there is shared, not loaded again. Errors:
  // FAILED_PRECONDITION or INVALID_ARGUMENT with the object's name and the reason.
  static absl::StatusOr<std::unique_ptr<PluginSet>> Load(const sdk::PluginRegistry& builtin,
                                                         const DirectoryContent& content,
                                                         const Choose& choose,
                                                         const PluginSet* previous);

  const sdk::PluginRegistry& registry() const { return registry_; }
  // Empty without a directory's objects.
  const std::string& digest() const { return digest_; }
  // Names of the plugins that objects have, chosen or not.
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
