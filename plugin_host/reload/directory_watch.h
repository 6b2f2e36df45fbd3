// Notifies of changes in a directory.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::reload {

// Reports files that are added, removed, renamed or written, and changed links of Kubernetes'
// volumes.
//
// Threading: one thread.
// Lifetime: independent.
// Errors: UNAVAILABLE with the system's message.
class DirectoryWatch {
 public:
  static absl::StatusOr<std::unique_ptr<DirectoryWatch>> Open(const std::string& directory);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // Readable after a change.
  int fd() const { return fd_; }
  // Discards the changes so far.
  void Clear();

 private:
  explicit DirectoryWatch(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_DIRECTORY_WATCH_H_
