// One shared object with plugins: its declared ABI, and the loaded code.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "plugin_host/sdk/plugin_registry.h"

namespace outboard::reload {

// The text of OUTBOARD_ABI compiled into an object. Runs none of its code, and does not trust its
// headers.
// Errors: INVALID_ARGUMENT if it is not a shared object for this machine, or has no such text.
absl::StatusOr<std::string> AbiOf(absl::string_view object);

// OK if an object with this ABI can be loaded here; otherwise FAILED_PRECONDITION with the
// differences. Pure.
absl::Status CheckAbi(absl::string_view object_abi, absl::string_view our_abi);

// Loaded code. A private, sealed copy of the file: later changes of the file do not affect what was
// checked, and several versions of one object can be loaded at the same time.
//
// The destructor unmaps the copy (dlclose). This is safe only if nothing of the object is left:
// plugins, their states, descriptors. PluginSet ensures this. If an object still stays mapped (a
// thread_local with a destructor, a unique symbol), memory grows by its size with each replacement,
// without other harm.
//
// Threading: Load and the destructor on one thread.
// Lifetime: outlives what the object registered.
// Errors: Load: as AbiOf and CheckAbi; FAILED_PRECONDITION with the dynamic linker's message, for
//         example for a symbol that this host lacks.
class LoadedObject {
 public:
  static absl::StatusOr<std::unique_ptr<LoadedObject>> Load(const std::string& name,
                                                            absl::string_view content);
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  const std::string& name() const { return name_; }
  // Adds its plugins.
  // Errors: the object's own, or INVALID_ARGUMENT if it adds none.
  absl::Status Register(sdk::PluginRegistry* registry) const;

 private:
  LoadedObject(std::string name, int copy) : name_(std::move(name)), copy_(copy) {}

  const std::string name_;
  // Stays open: the dynamic linker identifies the object by its path.
  const int copy_;
  void* handle_ = nullptr;
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_OBJECT_FILE_H_
