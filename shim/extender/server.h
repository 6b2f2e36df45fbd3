// The extender's HTTP(S) endpoint: connections, limits and certificates. The content of requests is
// opaque.
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
  std::string body;  // JSON for 200, otherwise a line of text
};

struct ServerOptions {
  std::string host;
  int port = 0;  // 0: any free port
  // Not set: plain HTTP.
  std::unique_ptr<http::ServingCertificate> certificate;
  // Whether a profile answers: /filter, /prioritize, /preempt and /bind exist.
  bool serves_profile = true;
  // Whether accepted clients may bind pods.
  bool serves_bind = false;
  // Whether the API server may ask about other schedulers' binds.
  bool serves_admit = false;
  // Of filter and prioritize: 5,000 nodes with a kubelet's full status have about 50 MiB. Bodies of
  // other verbs have less.
  size_t max_body_bytes = size_t{64} << 20;
  // Each open connection has a thread; more connections wait in the kernel's backlog. Without
  // those of binds, which may wait for long.
  size_t max_connections = 32;
  size_t max_binds = 128;
  // Number of requests read and answered at a time; bounds the memory for bodies. A bind counts
  // only until its body has been read: others must not starve while it waits for its gang.
  size_t max_requests = 8;
  // How long a request waits for its turn.
  absl::Duration max_wait = absl::Seconds(2);
  // Longer than the client's own limit: kube-scheduler closes idle connections after 90 s. A
  // request on a connection that the server has closed would fail its pod's attempt.
  absl::Duration idle_timeout = absl::Seconds(120);
  // For a whole request, and for its answer. kube-scheduler's own limit is 5 s.
  absl::Duration io_timeout = absl::Seconds(10);
  // Called on server threads, possibly concurrently.
  std::function<HttpAnswer(Verb verb, std::string body)> answer;
};

// POST /filter, /prioritize, /preempt, /bind and /admit. The server itself answers 403 to disabled
// /bind and /admit, 404 (without `serves_profile` to all but /admit), 413 to a longer body (either
// ends the connection), and 503 if a request's turn did not come in time.
//
// Threading: Start and Stop from one thread.
// Lifetime: stops when destroyed; objects used by the callback outlive it.
class Server {
 public:
  // Errors: UNAVAILABLE if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  // Waits for requests in progress and closes. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_SERVER_H_
