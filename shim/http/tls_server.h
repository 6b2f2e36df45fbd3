// Internal to shim/http: httplib's server over TLS.
#ifndef OUTBOARD_SHIM_HTTP_TLS_SERVER_H_
#define OUTBOARD_SHIM_HTTP_TLS_SERVER_H_

#include <httplib.h>

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/http/serving_certificate.h"

namespace outboard::http {

struct TlsLimits {
  // Limit for handshake and request, starting when a thread takes the connection. The library's own
  // server would let a client that sends a byte now and then occupy a thread.
  absl::Duration request = absl::Seconds(10);
  absl::Duration answer = absl::Seconds(30);
  // Connections of one client address on threads; more are closed, so that one client leaves
  // threads for others.
  int per_peer = 8;
};

// One request per connection; `Request::ssl` is the connection.
//
// Threading, Lifetime: as httplib::Server.
// Errors: is_valid is false if the TLS setup failed.
class TlsServer final : public httplib::Server {
 public:
  TlsServer(std::unique_ptr<ServingCertificate> certificate, TlsLimits limits);
  ~TlsServer() override;
  bool is_valid() const override { return context_ != nullptr; }

 private:
  bool process_and_close_socket(socket_t socket) override;
  bool Serve(socket_t socket);

  const std::unique_ptr<ServingCertificate> certificate_;
  const TlsLimits limits_;
  SSL_CTX* context_;
  absl::Mutex mutex_;
  std::map<std::string, int> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_TLS_SERVER_H_
