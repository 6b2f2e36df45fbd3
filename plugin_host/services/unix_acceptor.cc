#include "plugin_host/services/unix_acceptor.h"

#include <errno.h>
#include <glog/logging.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::services {
namespace {

constexpr int kBacklog = 128;
// Pause before accepting again after a shortage of file descriptors.
constexpr int kShortageMillis = 100;

absl::Status Failed(const std::string& path, const char* what) {
  return absl::FailedPreconditionError(absl::StrCat(path, ": ", what, ": ", strerror(errno)));
}

}  // namespace

UnixAcceptor::UnixAcceptor(std::string path, int listener, int stop,
                           std::vector<int64_t> allowed_uids)
    : path_(std::move(path)),
      listener_(listener),
      stop_(stop),
      allowed_uids_(std::move(allowed_uids)) {
  struct stat status;
  if (stat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
}

absl::StatusOr<std::unique_ptr<UnixAcceptor>> UnixAcceptor::Listen(
    const std::string& path, unsigned mode, std::vector<int64_t> allowed_uids) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return Failed(path, "bind");
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return Failed(path, "socket");
  // The file gets the socket's mode minus the umask, so its permissions are never wider than
  // requested.
  const char* failed = fchmod(listener, mode) != 0 ? "fchmod"
                       : bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0
                           ? "bind"
                       : chmod(path.c_str(), mode) != 0  ? "chmod"
                       : listen(listener, kBacklog) != 0 ? "listen"
                                                         : nullptr;
  const int stop = failed == nullptr ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
  if (failed == nullptr && stop < 0) failed = "eventfd";
  if (failed != nullptr) {
    const absl::Status status = Failed(path, failed);
    close(listener);
    return status;
  }
  return std::unique_ptr<UnixAcceptor>(
      new UnixAcceptor(path, listener, stop, std::move(allowed_uids)));
}

UnixAcceptor::~UnixAcceptor() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  struct stat status;
  if (stat(path_.c_str(), &status) == 0 && status.st_ino == inode_) unlink(path_.c_str());
  close(listener_);
  close(stop_);
}

void UnixAcceptor::Serve(std::function<void(int fd)> take) {
  take_ = std::move(take);
  thread_ = std::thread([this] { Run(); });
}

bool UnixAcceptor::IsAllowed(int fd) const {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  const bool is_allowed = allowed_uids_.empty()
                              ? peer.uid == geteuid() || peer.uid == 0
                              : std::find(allowed_uids_.begin(), allowed_uids_.end(),
                                          int64_t{peer.uid}) != allowed_uids_.end();
  if (!is_allowed) {
    LOG_EVERY_N(WARNING, 100) << "Rejected a connection of user " << peer.uid << " (pid "
                              << peer.pid << "): not in --allowed-uids";
  }
  return is_allowed;
}

void UnixAcceptor::Run() {
  pollfd polled[2] = {{listener_, POLLIN, 0}, {stop_, POLLIN, 0}};
  while (true) {
    poll(polled, 2, -1);
    if (polled[1].revents != 0) return;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      if (IsAllowed(fd)) {
        take_(fd);
      } else {
        close(fd);
      }
      continue;
    }
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
    LOG_EVERY_N(ERROR, 100) << path_ << ": accept: " << strerror(errno);
    poll(&polled[1], 1, kShortageMillis);
  }
}

}  // namespace outboard::services
