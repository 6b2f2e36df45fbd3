// Tells that something in a directory has changed.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::reload {

// Sees files come, go, be renamed or written, and the links of Kubernetes' volumes turn elsewhere.
//
// Threading: one thread. Lifetime: none but its own. Errors: UNAVAILABLE in the system's words.
class DirectoryWatch {
 public:
  static absl::StatusOr<std::unique_ptr<DirectoryWatch>> Open(const std::string& directory);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // Readable when something has changed.
  int fd() const { return fd_; }
  // Forgets what has happened so far.
  void Clear();

 private:
  explicit DirectoryWatch(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_
