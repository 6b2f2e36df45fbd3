// The shim's own HTTP endpoints: health, metrics, configuration, version, and what people ask.
#ifndef OUTBOARD_SHIM_HTTP_SERVER_H_
#define OUTBOARD_SHIM_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/http/serving_certificate.h"

namespace outboard::http {

// A named health check; the status says why it fails. Called on server threads.
struct Check {
  std::string name;
  std::function<absl::Status()> run;
};

// What a person wants of a host.
struct HostCommand {
  enum class Kind { kSwap, kRollback, kForgive };
  Kind kind = Kind::kSwap;
  std::string host;
  std::string instance;  // kSwap; empty: the newest on standby
};

// Who asks for which page, with which proof. What stands in it comes from anybody.
struct PageRequest {
  std::string verb;  // the HTTP method in lower case
  std::string path;
  std::string bearer_token;  // empty: none
  // Of a client certificate that an authority of `certificate` has signed; empty: none was shown.
  std::string certificate_user;
  std::vector<std::string> certificate_groups;
};

// 200, or the status and the reason with which a page is refused.
struct Verdict {
  int http_status = 200;
  std::string message;
};

struct ServerOptions {
  // HOST:PORT; without a certificate HOST is loopback. Port 0: any free one.
  std::string address;
  // With it the server speaks HTTPS only, and needs a guard.
  std::unique_ptr<ServingCertificate> certificate;
  // Asked before every page but /healthz, /livez and /readyz themselves. Runs on server threads and
  // may block there; when half of the threads wait in it, further requests get 503, so that health
  // is served. None: everybody may see everything.
  std::function<Verdict(const PageRequest&)> guard;
  // As kube-scheduler: leaderElection at /healthz and /readyz; shutdown and sched-handler-sync at
  // /readyz; /livez is only a ping. A path without checks has `ping`.
  std::vector<Check> healthz;
  std::vector<Check> livez;
  std::vector<Check> readyz;
  std::function<std::string()> metrics;  // Prometheus' text format
  std::function<std::string()> configz;  // YAML
  // What is known of the attempts at a pod (namespace/name), as JSON. NOT_FOUND: nothing.
  std::function<absl::StatusOr<std::string>(const std::string& pod)> explain;
  // At most `limit` pods of the scheduling queue (0: as many as it sees fit), or only the one of
  // that name (namespace/name), as JSON. An error: the queue could not be looked at.
  std::function<absl::StatusOr<std::string>(size_t limit, const std::string& pod)> queue;
  // All instances of hosts, as JSON.
  std::function<absl::StatusOr<std::string>()> hosts;
  std::function<absl::Status(const HostCommand& command)> command_host;
  std::string version_json;
};

// Serves plain HTTP on loopback, or HTTPS on any address to those whom a guard lets in: what these
// endpoints tell is not for everyone. A refusal is a Kubernetes Status in JSON.
//
// Paths: /healthz /livez /readyz (?verbose, ?exclude=NAME, and /PATH/NAME for one check), /metrics,
// /configz, /version, /explain?pod=NAMESPACE/NAME, /queue?limit=N&pod=NAMESPACE/NAME, /hosts. POST
// /hosts/swap?host=NAME&instance=ID, /hosts/rollback?host=NAME, /hosts/forgive?host=NAME, with the
// header `X-Outboard-Command: 1`, which no page in a browser can send. Bounded: 4 threads (HTTPS:
// 16, of which one address gets 8), 64 waiting connections, requests of 8 KiB without a body, 5 s
// to read or write (HTTPS: 10 s for handshake and request, 30 s for the answer). Threading: Start
// and Stop from one thread; callbacks run on server threads. Lifetime:  stops when destroyed; what
// callbacks use outlives it.
class Server {
 public:
  // Errors: INVALID_ARGUMENT for an address that is malformed, or not loopback without a
  // certificate, and for a certificate without a guard; UNAVAILABLE if it cannot be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port in use.
  int port() const;
  // Ends requests under way and closes. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVER_H_
