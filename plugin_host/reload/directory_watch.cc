#include "plugin_host/reload/directory_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outboard::reload {

absl::StatusOr<std::unique_ptr<DirectoryWatch>> DirectoryWatch::Open(const std::string& directory) {
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  constexpr uint32_t kEvents =
      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ATTRIB | IN_ONLYDIR;
  if (fd < 0 || inotify_add_watch(fd, directory.c_str(), kEvents) < 0) {
    const absl::Status failed =
        absl::UnavailableError(absl::StrCat("cannot watch ", directory, ": ", strerror(errno)));
    if (fd >= 0) close(fd);
    return failed;
  }
  return std::unique_ptr<DirectoryWatch>(new DirectoryWatch(fd));
}

DirectoryWatch::~DirectoryWatch() { close(fd_); }

void DirectoryWatch::Clear() {
  char events[4096];
  while (read(fd_, events, sizeof(events)) > 0) {
  }
}

}  // namespace outboard::reload
