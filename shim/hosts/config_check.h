// Asks hosts whether they would accept another configuration.
#ifndef OUTBOARD_SHIM_HOSTS_CONFIG_CHECK_H_
#define OUTBOARD_SHIM_HOSTS_CONFIG_CHECK_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/config/config.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/plans.h"

namespace outboard::hosts {

// One check of a configuration before it is put into force. Without it, a host would refuse its new
// part only after its session with the current one has ended, and pods would wait.
//
// All connected instances are asked. A host refuses if one instance does and none accepts: an
// instance that replaces the serving one may be the first to know a new argument.
//
// Usage: construct → Ask each host → Take, until it has a result.
// Threading: scheduling thread.
// Lifetime: the loop of the clients outlives it. Deleting it cancels the check.
// Errors: an instance that does not answer, or cannot check, does not count.
class ConfigCheck {
 public:
  ConfigCheck(std::shared_ptr<const config::Config> config, Plans plans)
      : config_(std::move(config)), plans_(std::move(plans)) {}

  // Starts to ask an instance of the host about its part of the plans; does not wait. `client`:
  // only for this.
  void Ask(const std::string& host, std::unique_ptr<GrpcHostClient> client, absl::Time deadline);
  // Whether a host is to be asked: whether the plans have another part for it than `current`.
  bool IsNew(const std::string& host, const Plans& current) const;
  // Once all instances have answered: OK, or INVALID_ARGUMENT with all problems, by file, line and
  // field.
  std::optional<absl::Status> Take();
  // What was checked.
  const std::shared_ptr<const config::Config>& config() const { return config_; }

 private:
  struct Question {
    std::string host;
    std::unique_ptr<GrpcHostClient> client;
    std::optional<absl::StatusOr<v1beta1::ConfigureResponse>> answer;
  };
  std::shared_ptr<const config::Config> config_;
  Plans plans_;
  std::vector<Question> questions_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_CONFIG_CHECK_H_
