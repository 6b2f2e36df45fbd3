// Loads the cluster address and credentials from a kubeconfig file or from inside a pod.
#ifndef OUTBOARD_SHIM_KUBE_KUBECONFIG_H_
#define OUTBOARD_SHIM_KUBE_KUBECONFIG_H_

#include <string>

#include "absl/status/statusor.h"
#include "shim/kube/client_config.h"

namespace outboard::kube {

struct KubeconfigOptions {
  // Empty: use the file's current-context.
  std::string context;
  // Whether `insecure-skip-tls-verify: true` is accepted.
  bool allow_insecure = false;
};

// Reads a kubeconfig file (YAML or JSON). Paths in it are relative to its folder.
//
// Supported: cluster server, certificate-authority(-data), tls-server-name, proxy-url,
// insecure-skip-tls-verify (if allowed); user token, tokenFile, client-certificate(-data),
// client-key(-data), exec. Rejected, because ignoring them would act under another identity:
// username and password, auth-provider, impersonation (as…).
//
// Threading: pure apart from reading files.
// Errors: with file and field path ("f.yaml: users[name=a].user.token: …").
absl::StatusOr<ClientConfig> LoadKubeconfig(const std::string& path,
                                            const KubeconfigOptions& options = {});

// The service account of the pod in which this process runs: KUBERNETES_SERVICE_HOST and _PORT, and
// the files under `directory`.
absl::StatusOr<ClientConfig> LoadInClusterConfig(
    const std::string& directory = "/var/run/secrets/kubernetes.io/serviceaccount");

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_KUBECONFIG_H_
