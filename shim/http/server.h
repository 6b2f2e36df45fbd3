// The shim's HTTP endpoints: health, metrics, configuration, version, status pages and host
// commands.
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

// A named health check; the status contains the reason of a failure. Called on server threads.
struct Check {
  std::string name;
  std::function<absl::Status()> run;
  // What people should know although the check passes; `?verbose` shows it to everyone. May be
  // null.
  std::function<std::string()> note = nullptr;
};

// A command to a host.
struct HostCommand {
  enum class Kind { kSwap, kRollback, kClearQuarantine };
  Kind kind = Kind::kSwap;
  std::string host;
  std::string instance;  // for kSwap; empty: the newest standby
};

// A request for a page with its credentials. The content is not trusted.
struct PageRequest {
  std::string verb;  // the HTTP method in lower case
  std::string path;
  std::string bearer_token;  // empty: none
  // From a client certificate that an authority of `certificate` has signed. Empty: no certificate.
  std::string certificate_user;
  std::vector<std::string> certificate_groups;
};

// 200, or the status and the reason of a rejection.
struct Verdict {
  int http_status = 200;
  std::string message;
};

struct ServerOptions {
  // HOST:PORT; without a certificate HOST must be loopback. Port 0: any free port. Or unix:PATH,
  // without a certificate: for processes of this user and root only.
  std::string address;
  // If set, the server speaks HTTPS only and needs a guard.
  std::unique_ptr<ServingCertificate> certificate;
  // Called for every page except /healthz, /livez and /readyz themselves. Runs on server threads
  // and may block. If half of the threads wait in it, further requests get 503, so that health is
  // always served. Not set: all pages are public.
  std::function<Verdict(const PageRequest&)> guard;
  // As in kube-scheduler: leaderElection at /healthz and /readyz; shutdown and sched-handler-sync
  // at /readyz; /livez is only a ping. A path without checks has `ping`.
  std::vector<Check> healthz;
  std::vector<Check> livez;
  std::vector<Check> readyz;
  std::function<std::string()> metrics;  // Prometheus' text format
  // The metrics of a plugin host, in the same format. NOT_FOUND: no such host, or its configuration
  // has no address for them. Other errors: it does not answer as it should.
  std::function<absl::StatusOr<std::string>(const std::string& host)> host_metrics;
  std::function<std::string()> configz;  // YAML
  // The recorded attempts at a pod (namespace/name), as JSON. NOT_FOUND: none.
  std::function<absl::StatusOr<std::string>(const std::string& pod)> explain;
  // At most `limit` pods of the scheduling queue (0: default limit), or only the pod of that name
  // (namespace/name), as JSON. Errors: the scheduling thread did not answer.
  std::function<absl::StatusOr<std::string>(size_t limit, const std::string& pod)> queue;
  // All instances of hosts, as JSON.
  std::function<absl::StatusOr<std::string>()> hosts;
  std::function<absl::Status(const HostCommand& command)> command_host;
  // Who leads, if this process does not; otherwise "". Follows the answer of a command, and of
  // /explain when there is no attempt. May be null.
  std::function<std::string()> follower_note;
  std::string version_json;
};

// Serves plain HTTP on loopback or a Unix socket, or HTTPS on any address to users that a guard
// allows: the pages are not public. A rejection is a Kubernetes Status in JSON.
//
// GET: /healthz /livez /readyz (?verbose, ?exclude=NAME, and /PATH/NAME for one check), /metrics,
// /metrics/hosts?host=NAME, /configz, /version, /explain?pod=NAMESPACE/NAME,
// /queue?limit=N&pod=NAMESPACE/NAME, /hosts. POST: /hosts/swap?host=NAME&instance=ID,
// /hosts/rollback?host=NAME, /hosts/clear-quarantine?host=NAME, with the header
// `X-Outboard-Command: 1`, which a page in a browser cannot send.
//
// Limits: 16 threads (HTTPS: at most 8 for one address), 64 waiting connections, requests of 8 KiB
// without a body, 10 s for handshake and request, 30 s for the answer; while other connections wait
// for a thread 0.25 s for each (HTTPS: 0.5 s).
//
// Threading: Start and Stop from one thread; callbacks run on server threads.
// Lifetime: stops when destroyed; objects used by callbacks outlive it.
class Server {
 public:
  // Errors: INVALID_ARGUMENT for a malformed address, a non-loopback address without a certificate,
  // a Unix socket with one, or a certificate without a guard; UNAVAILABLE if the address cannot be
  // bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The port in use; 0 for a Unix socket.
  int port() const;
  // Waits for requests in progress and closes. Idempotent.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVER_H_
