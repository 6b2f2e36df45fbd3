// Where an API server is and how to trust and convince it; what kubeconfig and in-cluster loading
// produce.
#ifndef OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_
#define OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_

#include <memory>
#include <string>

#include "shim/kube/credentials.h"

namespace outboard::kube {

struct ClientConfig {
  // scheme://host[:port][/prefix], without a trailing slash.
  std::string server;
  // The certificate authorities to trust; the file wins and is read again every second.
  // Without either the system's are used.
  std::string ca_pem;
  std::string ca_file;
  // Set only where the administrator allowed it.
  bool insecure_skip_tls_verify = false;
  // The name to verify and to send as SNI, where it is not the host of `server`.
  std::string tls_server_name;
  // Empty: the environment decides (HTTPS_PROXY, NO_PROXY), never for a loopback server.
  std::string proxy_url;
  // Default namespace of the context or of the service account.
  std::string default_namespace;
  // Never null in a loaded configuration.
  std::shared_ptr<CredentialSource> credentials;
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CLIENT_CONFIG_H_
