// The scheduler process: everything that outboard-shim is made of, put together once.
#ifndef OUTBOARD_SHIM_SHIM_H_
#define OUTBOARD_SHIM_SHIM_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/config.h"

namespace outboard::shim {

struct ShimOptions {
  // Overrides the configuration's.
  std::string kubeconfig;
  bool allow_insecure_api_server = false;
  // Where token, ca.crt and namespace are, in a cluster.
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// Threads: the scheduling thread (Run), one a watched resource, one an API connection, the lease's,
// the hosts' connector, the HTTP server's. All of them post to the scheduling thread's inbox;
// nothing else is shared.
//
// Threading: Create and Run on one thread; Stop and Reload from any.
// Errors:    Create: INVALID_ARGUMENT for the configuration, others for what it needs. Run: why the
// process must end; OK after Stop.
class Shim {
 public:
  static absl::StatusOr<std::unique_ptr<Shim>> Create(config::Config config,
                                                      const ShimOptions& options);
  virtual ~Shim() = default;

  // Schedules until Stop, or until the lease is lost.
  virtual absl::Status Run() = 0;
  // Ends Run: finishes binds under way (for at most 5 s), gives the lease up, and finishes events
  // (for at most 10 s).
  virtual void Stop() = 0;
  // Reads the configuration again, soon. One that cannot be used changes nothing.
  virtual void Reload() = 0;
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_SHIM_H_
