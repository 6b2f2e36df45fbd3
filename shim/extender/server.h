// The extender's HTTP(S) endpoint: connections, bounds and certificates; what is asked is
// another's.
#ifndef OUTBOARD_SHIM_EXTENDER_SERVER_H_
#define OUTBOARD_SHIM_EXTENDER_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/http/serving_certificate.h"

namespace outboard::extender {

enum class Verb { kFilter, kPrioritize, kPreempt, kBind, kAdmit };

struct HttpAnswer {
  int status = 200;
  std::string body;  // JSON with 200, else a line of text
};

struct ServerOptions {
  std::string host;
  int port = 0;  // 0: any free one
  // None: plain HTTP.
  std::unique_ptr<http::ServingCertificate> certificate;
  // Whether whoever gets through may bind pods.
  bool serves_bind = false;
  // Whether the API server may ask about others' binds.
  bool serves_admit = false;
  // 5,000 nodes with all that a kubelet writes into their status are some 50 MiB.
  size_t max_body_bytes = size_t{64} << 20;
  // Each connection that is open has a thread; more wait in the kernel's backlog.
  size_t max_connections = 32;
  // So many requests are read and answered at a time, which bounds the memory for bodies.
  size_t max_requests = 8;
  // What a request waits for its turn.
  absl::Duration max_wait = absl::Seconds(2);
  // By an idle connection's end its client has closed it: kube-scheduler does after 90 s, and a
  // request that meets a closed connection fails its pod's attempt.
  absl::Duration idle_timeout = absl::Seconds(120);
  absl::Duration io_timeout = absl::Seconds(5);
  // Called on server threads, several at a time.
  std::function<HttpAnswer(Verb verb, std::string body)> answer;
};

// POST /filter, /prioritize, /preempt, /bind and /admit. Answers of its own: 403 to /bind and
// /admit where they are not served, 404, 413 to a longer body, 503 to whom no turn came.
//
// Threading: Start and Stop from one thread. Lifetime: stops when destroyed; what the callback uses
// outlives it.
class Server {
 public:
  // Errors: UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Lets requests under way end, and closes. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_SERVER_H_
