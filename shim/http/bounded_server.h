// Internal to shim/http and shim/extender: httplib's server, plain or over TLS, with limits that
// the library does not have.
#ifndef OUTBOARD_SHIM_HTTP_BOUNDED_SERVER_H_
#define OUTBOARD_SHIM_HTTP_BOUNDED_SERVER_H_

#include <httplib.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/http/serving_certificate.h"

namespace outboard::http {

struct ConnectionLimits {
  // Bytes of one request: of its headers, and of all of it. The library reads a header line without
  // an end into memory for as long as it comes.
  size_t header_bytes = size_t{64} << 10;
  size_t request_bytes = size_t{64} << 10;
  // Time for handshake and first request, starting when a thread takes the connection, and for each
  // later request. The library would let a client that sends a byte now and then occupy a thread.
  absl::Duration request = absl::Seconds(10);
  absl::Duration answer = absl::Seconds(30);
  // Instead of these three, while other connections wait for a thread: how long the server waits
  // for a client. A client that is slow, or keeps its connection without a request, gives its
  // thread to the next one. The server's own delays do not count.
  absl::Duration crowded = absl::Milliseconds(500);
  // How long a connection is kept for its next request. Zero: one request per connection.
  absl::Duration idle = absl::ZeroDuration();
  // Connections of one client address on threads; more are closed, so that one client leaves
  // threads for others. Zero: no limit.
  int per_peer = 0;
};

// `Request::ssl` is the connection if it is encrypted. After an answer of 4xx the
// connection ends, because what the client still sends may be the rest of the refused request.
// Stopping ends connections that wait for a client. Over a Unix socket, connections of other
// users' processes (not root's) are closed before a byte is read.
//
// Threading, Lifetime: as httplib::Server.
// Errors: is_valid is false if the TLS setup failed.
class BoundedServer final : public httplib::Server {
 public:
  // Plain HTTP if `certificate` is null.
  BoundedServer(std::unique_ptr<ServingCertificate> certificate, ConnectionLimits limits);
  ~BoundedServer() override;
  bool is_valid() const override { return certificate_ == nullptr || context_ != nullptr; }
  // Set by the owner of the threads: whether a connection waits for one.
  std::atomic<bool>* crowded() { return &crowded_; }

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool Serve(socket_t socket);

  const std::unique_ptr<ServingCertificate> certificate_;
  const ConnectionLimits limits_;
  SSL_CTX* context_ = nullptr;  // null: plain
  std::atomic<bool> crowded_{false};
  absl::Mutex mutex_;
  std::map<std::string, int> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_BOUNDED_SERVER_H_
