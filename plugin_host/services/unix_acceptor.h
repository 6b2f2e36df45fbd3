// Accepts connections on a Unix socket from processes of allowed users.
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

// Why not gRPC's own listener: it does not check the peer, stops listening permanently after a
// short shortage of file descriptors (1.51), and may remove a socket that another process created
// in its place.
//
// Threading: Listen, Serve and the destructor on one thread; accepts on its own thread.
// Lifetime:  the destructor stops accepting and removes the socket, if it is still its own.
// Errors:    Listen: FAILED_PRECONDITION with the path and the system's message.
class UnixAcceptor {
 public:
  // The socket has permissions `mode` from its creation. `allowed_uids` empty: this process's user
  // and root.
  static absl::StatusOr<std::unique_ptr<UnixAcceptor>> Listen(const std::string& path,
                                                              unsigned mode,
                                                              std::vector<int64_t> allowed_uids);
  ~UnixAcceptor();
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;

  // `take` gets non-blocking connections and must close them.
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
