// Address of an API server, trust and credentials. Produced by kubeconfig and in-cluster loading.
#ifndef OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_
#define OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_

#include <memory>
#include <string>

#include "shim/kube/credentials.h"

namespace outboard::kube {

struct ClientConfig {
  // scheme://host[:port][/prefix], without a trailing slash.
  std::string server;
  // Trusted certificate authorities. The file takes precedence and is reread every second. Without
  // both, the system's authorities are used.
  std::string ca_pem;
  std::string ca_file;
  // Set only if the administrator allowed it.
  bool insecure_skip_tls_verify = false;
  // The name to verify and to send as SNI, if it differs from the host of `server`.
  std::string tls_server_name;
  // Empty: use HTTPS_PROXY and NO_PROXY, but never a proxy for a loopback server.
  std::string proxy_url;
  // Default namespace of the context or of the service account.
  std::string default_namespace;
  // Never null in a loaded configuration.
  std::shared_ptr<CredentialSource> credentials;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_
