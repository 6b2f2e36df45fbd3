// What servers over httplib have in common: an address of their own, and a bounded number of
// threads.
#ifndef OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_
#define OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"

// The library's header is long, and its macros are for those who write handlers.
namespace httplib {
class Server;
}

namespace outboard::http {

struct ServingBounds {
  size_t threads = 4;  // each serves one connection at a time
  // Connections that were accepted and wait for a thread. At the bound accepting pauses, and the
  // kernel's backlog fills: refusing them would leak their sockets.
  size_t max_waiting = 64;
};

// A server that listens.
//
// Threading: Start and Stop from one thread. Lifetime: the server outlives it; it stops when
// destroyed.
class ServingThread {
 public:
  ServingThread();
  ~ServingThread();
  ServingThread(const ServingThread&) = delete;
  ServingThread& operator=(const ServingThread&) = delete;

  // Binds the address, which no other socket then has, and returns once the server accepts.
  // `port` 0: any free one. Errors: UNAVAILABLE if the address cannot be bound.
  absl::Status Start(httplib::Server* server, const std::string& host, int port,
                     const ServingBounds& bounds);
  // The port in use.
  int port() const;
  // Accepts no more, calls `end_connections` if there is any, and waits until requests under way
  // have ended. Idempotent.
  void Stop(const std::function<void()>& end_connections = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_
