// The certificate of a server, reloaded when its files change.
#ifndef OUTBOARD_SHIM_HTTP_SERVING_CERTIFICATE_H_
#define OUTBOARD_SHIM_HTTP_SERVING_CERTIFICATE_H_

#include <openssl/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace outboard::http {

struct ServingCertificateOptions {
  // PEM: the certificate and its chain; its private key, without a password. Set both, or none:
  // then a self-signed certificate is created in memory, as in kube-scheduler.
  std::string cert_file;
  std::string key_file;
  // PEM: the authorities of client certificates. Empty: clients are not asked for certificates.
  std::string client_ca_file;
  // With client_ca_file: the handshake fails without a certificate of one of these authorities.
  bool requires_client_certificate = false;
  // DNS names and addresses of the self-signed certificate, besides localhost and the host name.
  std::vector<std::string> names;
  // A handshake checks the files if the last check is older than this.
  absl::Duration period = absl::Seconds(1);
  // Called after the files changed, with whether their content is now in use; on the thread of a
  // handshake. It must not block.
  std::function<void(bool in_use)> on_change;
};

// Threading: thread-safe.
// Lifetime: outlives the contexts it is installed on, and their connections.
// Errors: Load reports the file and its fault. Later, unusable content is logged once and the
// previous certificate stays in use.
class ServingCertificate {
 public:
  static absl::StatusOr<std::unique_ptr<ServingCertificate>> Load(
      ServingCertificateOptions options);
  ~ServingCertificate();
  ServingCertificate(const ServingCertificate&) = delete;
  ServingCertificate& operator=(const ServingCertificate&) = delete;

  // Servers on `context` speak TLS 1.2 or newer and use the current files at each handshake.
  // Clients may present a certificate if there are authorities for it. Unless a certificate is
  // required, an invalid one does not end the handshake; see VerifiedClient.
  void InstallOn(SSL_CTX* context);

 private:
  struct Files;
  struct State;
  explicit ServingCertificate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The certificate of a connection's client if one of the authorities has signed it for clients;
// otherwise null. Owned by the connection.
X509* VerifiedClient(const SSL* connection);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVING_CERTIFICATE_H_
