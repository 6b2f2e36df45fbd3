// Shared by all servers over httplib: an exclusive address, and a bounded number of threads.
#ifndef OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_
#define OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"

// Forward declaration: the library's header is long, and only handlers need its macros.
namespace httplib {
class Server;
}

namespace outboard::http {

struct ServingBounds {
  size_t threads = 4;  // each serves one connection at a time
  // Accepted connections that wait for a thread. At the limit accepting pauses and the kernel's
  // backlog fills: rejecting them would leak their sockets.
  size_t max_waiting = 64;
  // If set: kept true while a connection waits for a thread.
  std::atomic<bool>* crowded = nullptr;
};

// A listening server.
//
// Threading: Start and Stop from one thread.
// Lifetime: the server outlives this object, which stops when destroyed.
class ServingThread {
 public:
  ServingThread();
  ~ServingThread();
  ServingThread(const ServingThread&) = delete;
  ServingThread& operator=(const ServingThread&) = delete;

  // Binds the address exclusively and returns when the server accepts connections. `port` 0: any
  // free port.
  // Errors: UNAVAILABLE if the address cannot be bound.
  absl::Status Start(httplib::Server* server, const std::string& host, int port,
                     const ServingBounds& bounds);
  // The same for a Unix socket that only this user may open. A socket that an ended process left
  // there is replaced.
  // Errors: UNAVAILABLE if a process serves there or the file cannot be created.
  absl::Status StartUnix(httplib::Server* server, const std::string& path,
                         const ServingBounds& bounds);
  // The port in use; 0 for a Unix socket.
  int port() const;
  // Stops accepting, and waits for requests in progress; removes the Unix socket. Idempotent.
  void Stop();

 private:
  void Serve(httplib::Server* server);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVING_THREAD_H_
