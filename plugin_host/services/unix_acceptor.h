// Takes connections on a Unix socket from processes of allowed users.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_UNIX_ACCEPTOR_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_UNIX_ACCEPTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

namespace outboard::services {

// gRPC's own listener does not look at who connects, stops listening for ever when file descriptors
// run out for a moment (1.51), and may remove a socket that another process has put in its place.
//
// Threading: Listen, Serve and the destructor on one thread; accepts on a thread of its own.
// Lifetime:  the destructor stops accepting and removes the socket, if it is still its own.
// Errors:    Listen: FAILED_PRECONDITION with the path and the system's words.
class UnixAcceptor {
 public:
  // The socket has permissions `mode` from its first moment on. `allowed_uids` empty: this
  // process's user and root.
  static absl::StatusOr<std::unique_ptr<UnixAcceptor>> Listen(const std::string& path,
                                                              unsigned mode,
                                                              std::vector<int64_t> allowed_uids);
  ~UnixAcceptor();
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;

  // `take` gets non-blocking connections, which are its to close.
  void Serve(std::function<void(int fd)> take);

 private:
  UnixAcceptor(std::string path, int listener, int stop, std::vector<int64_t> allowed_uids);
  void Run();
  bool IsAllowed(int fd) const;

  const std::string path_;
  const int listener_;
  const int stop_;  // an eventfd; readable: stop
  const std::vector<int64_t> allowed_uids_;
  uint64_t inode_ = 0;
  std::function<void(int fd)> take_;
  std::thread thread_;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_UNIX_ACCEPTOR_H_
