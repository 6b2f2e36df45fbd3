// Credentials from an exec plugin (client.authentication.k8s.io), as kubeconfig files name them.
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
  // Added to our own environment.
  std::vector<std::pair<std::string, std::string>> env;
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  // The JSON of spec.cluster where the plugin wants to know; empty otherwise.
  std::string cluster_json;
  std::string install_hint;
  // client-go has none and hangs with the plugin.
  absl::Duration timeout = absl::Seconds(30);
  // After a failure, how long the old credentials are used before the plugin is asked again.
  absl::Duration retry_period = absl::Seconds(10);
};

// Runs the plugin when there are no credentials yet, when they have expired and after a 401; never
// through a shell, without our file descriptors, and no longer than `timeout`. A failed refresh
// keeps the old credentials.
//
// Threading: thread-safe; Get blocks while the plugin runs. Errors: a plugin that cannot be
// started, fails, or answers with something else than an ExecCredential of the same version.
std::shared_ptr<CredentialSource> MakeExecCredentials(ExecCredentialOptions options);

// What a program wrote to its standard output. `env` is the whole environment.
absl::StatusOr<std::string> RunProgram(const std::string& command,
                                       const std::vector<std::string>& args,
                                       const std::vector<std::string>& env, absl::Duration timeout);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_EXEC_CREDENTIALS_H_
