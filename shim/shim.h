// The scheduler process: creates and connects all parts of outboard-shim.
#ifndef OUTBOARD_SHIM_SHIM_H_
#define OUTBOARD_SHIM_SHIM_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/config.h"

namespace outboard::shim {

// A file that could not be loaded.
struct RefusedFile {
  std::string sha256;    // empty: it cannot be read
  std::string problems;  // one a line; empty: none was refused
};

struct ShimOptions {
  // Watched for changes; empty: the file of the configuration.
  std::string config_file;
  // Where the last good configuration is kept; empty: nowhere. The configuration may be this file:
  // then `refused` says why.
  std::string last_good_file;
  RefusedFile refused;
  int verbosity = -1;  // below 0: from the configuration
  // The pod of this process, for events about it; empty: not in a pod.
  std::string pod_namespace, pod_name;
  // Overrides the kubeconfig of the configuration.
  std::string kubeconfig;
  bool allow_insecure_api_server = false;
  // In-cluster: the directory with token, ca.crt and namespace.
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  // The pod's addresses, separated by commas, for `extender.leaderService`.
  std::string pod_ips;
};

// Threads: the scheduling thread (Run), one per watched resource, one per API connection, one for
// the lease, one for the hosts' connector, and the HTTP server's. All of them post to the
// scheduling thread's task_queue and share nothing else.
//
// Threading: Create and Run on one thread; Stop and Reload from any thread.
// Errors: Create: INVALID_ARGUMENT for the configuration, other codes for its dependencies. Run:
// why the process must end; OK after Stop.
class Shim {
 public:
  static absl::StatusOr<std::unique_ptr<Shim>> Create(config::Config config,
                                                      const ShimOptions& options);
  virtual ~Shim() = default;

  // Schedules until Stop, or until the lease is lost.
  virtual absl::Status Run() = 0;
  // Ends Run: finishes binds in flight (at most 5 s), releases the lease, and finishes events (at
  // most 10 s).
  virtual void Stop() = 0;
  // Reads the configuration again, soon. An invalid file changes nothing.
  virtual void Reload() = 0;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_H_
