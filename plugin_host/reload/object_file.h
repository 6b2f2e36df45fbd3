// One shared object with plugins: what its file says of itself, and the loaded code.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::reload {

// The text of OUTBOARD_ABI that was compiled into an object. Runs none of its code, and believes
// nothing that its headers say. Errors: INVALID_ARGUMENT if it is no shared object of this machine,
// or has no such text.
absl::StatusOr<std::string> AbiOf(absl::string_view object);

// OK if an object of this ABI can be loaded here; FAILED_PRECONDITION that names what differs.
// Pure.
absl::Status CheckAbi(absl::string_view object_abi, absl::string_view our_abi);

// Code in memory. It is a private, sealed copy of the file: whatever happens to the file, this
// process reads what was checked, and several versions of one object can be loaded at once.
//
// The copy is unmapped (dlclose) by the destructor. That is safe only if nothing of the object is
// left: plugins, their states, descriptors. PluginSet sees to it. Where an object keeps itself
// mapped all the same (a thread_local with a destructor, a unique symbol), memory grows by its size
// with each replacement; nothing breaks.
//
// Threading: Load and the destructor on one thread. Lifetime: outlives what the object registered.
// Errors:    Load: as AbiOf and CheckAbi; FAILED_PRECONDITION in the dynamic linker's words, for
// example a
//            symbol that this host does not have.
class LoadedObject {
 public:
  static absl::StatusOr<std::unique_ptr<LoadedObject>> Load(const std::string& name,
                                                            absl::string_view content);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  const std::string& name() const { return name_; }
  // Adds its plugins. Errors: what the object says, or INVALID_ARGUMENT if it adds none.
  absl::Status Register(sdk::PluginRegistry* registry) const;

 private:
  LoadedObject(std::string name, int copy) : name_(std::move(name)), copy_(copy) {}

  const std::string name_;
  // Stays open: its path is the name by which the dynamic linker knows the object.
  const int copy_;
  void* handle_ = nullptr;
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_
