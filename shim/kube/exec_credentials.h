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
  // How long the old credentials are used after a failure before the next run. Without usable
  // credentials the next run is after a second at the latest.
  absl::Duration retry_period = absl::Seconds(10);
};

// What a plugin printed.
struct ExecCredential {
  Credentials credentials;
  absl::Time expires = absl::InfiniteFuture();  // wall time, as printed
};
// Pure.
// Errors: INVALID_ARGUMENT for anything but an ExecCredential of this version with a token, or with
// a certificate and its key.
absl::StatusOr<ExecCredential> ParseExecCredential(absl::string_view output,
                                                   absl::string_view api_version);

// Runs the plugin at the first Get, after four fifths of the credentials' life, and after a 401;
// one run at a time, never through a shell, without our file descriptors, and at most for
// `timeout`. Meanwhile, and after a failed run, the old credentials are used until they expire.
// Their expiry is converted to the steady clock when they arrive. Credentials that look expired on
// arrival, because a clock is wrong, are used for `retry_period`: the API server decides.
//
// Threading: thread-safe. The plugin runs in the background: Get never waits for it.
// Lifetime: the destructor kills a plugin that runs.
// Errors: the plugin cannot be started, fails, has not answered yet, or prints anything but an
// ExecCredential of the same version. All messages name it.
std::shared_ptr<CredentialSource> MakeExecCredentials(ExecCredentialOptions options);

// Returns a program's standard output. `env` is the whole environment. Kills the program at the
// timeout, and when `cancel_fd` becomes readable (-1: never).
absl::StatusOr<std::string> RunProgram(const std::string& command,
                                       const std::vector<std::string>& args,
                                       const std::vector<std::string>& env, absl::Duration timeout,
                                       int cancel_fd = -1);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_EXEC_CREDENTIALS_H_
