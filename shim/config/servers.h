// Parts of the ShimConfiguration: the servers of the shim.
#ifndef OUTBOARD_SHIM_CONFIG_SERVERS_H_
#define OUTBOARD_SHIM_CONFIG_SERVERS_H_

#include <string>

namespace outboard::config {

// HTTPS server; the API server authenticates and authorizes its users.
struct SecureServing {
  std::string address = "0.0.0.0:10270";
  std::string cert_file;  // with key_file; empty: create a certificate in memory
  std::string key_file;
  std::string client_ca_file;  // empty: bearer tokens only
  bool operator==(const SecureServing&) const = default;
};

// The extender's certificate, and the authority of its clients' certificates.
struct ServerTls {
  std::string cert_file;
  std::string key_file;
  std::string client_ca_file;  // empty: accept all clients
  bool operator==(const ServerTls&) const = default;
};

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_SERVERS_H_
