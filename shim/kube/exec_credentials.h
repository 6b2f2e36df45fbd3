// Credentials from an exec plugin (client.authentication.k8s.io), as configured in kubeconfig
// files.
#ifndef OUTBOARD_SHIM_KUBE_EXEC_CREDENTIALS_H_
#define OUTBOARD_SHIM_KUBE_EXEC_CREDENTIALS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/kube/credentials.h"

namespace outboard::kube {

struct ExecCredentialOptions {
  std::string command;
  std::vector<std::string> args;
  // Added to this process's environment.
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  // The JSON of spec.cluster if provideClusterInfo is set; otherwise empty.
  std::string cluster_json;
  std::string install_hint;
  // client-go has no timeout and hangs with the plugin.
  absl::Duration timeout = absl::Seconds(30);
  // How long the old credentials are used after a failure before the next run.
  absl::Duration retry_period = absl::Seconds(10);
};

// Runs the plugin without credentials, after their expiry and after a 401; never through a shell,
// without our file descriptors, and at most for `timeout`. A failed refresh keeps the old
// credentials.
//
// Threading: thread-safe; Get blocks while the plugin runs.
// Errors: the plugin cannot be started, fails, or prints anything but an ExecCredential of the same
// version.
std::shared_ptr<CredentialSource> MakeExecCredentials(ExecCredentialOptions options);

// Returns a program's standard output. `env` is the whole environment.
absl::StatusOr<std::string> RunProgram(const std::string& command,
                                       const std::vector<std::string>& args,
                                       const std::vector<std::string>& env, absl::Duration timeout);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_EXEC_CREDENTIALS_H_
