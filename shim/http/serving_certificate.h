// The certificate that a server shows, kept up with files that others replace.
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
  // PEM: the certificate, then those that signed it; its private key, without a password. Both or
  // neither: then one that signs itself is made in memory, as kube-scheduler does.
  std::string cert_file;
  std::string key_file;
  // PEM: the authorities of client certificates. Empty: clients are not asked for one.
  std::string client_ca_file;
  // With client_ca_file: the handshake fails for clients without a certificate of one of these.
  bool clients_must_show_one = false;
  // What the certificate made in memory is for, besides localhost and this machine's name: DNS
  // names and addresses.
  std::vector<std::string> names;
  // A handshake looks at the files if the last look is older.
  absl::Duration period = absl::Seconds(1);
  // Called when files have changed, with whether their content serves from now on; on a thread that
  // makes a handshake. It must not block.
  std::function<void(bool in_use)> on_change;
};

// Threading: thread-safe. Lifetime: outlives the contexts that it is installed on, and their
// connections. Errors: Load says what is wrong with which file. Afterwards, a content that cannot
// be used is logged once, and what served goes on serving.
class ServingCertificate {
 public:
  static absl::StatusOr<std::unique_ptr<ServingCertificate>> Load(
      ServingCertificateOptions options);
  ~ServingCertificate();
  ServingCertificate(const ServingCertificate&) = delete;
  ServingCertificate& operator=(const ServingCertificate&) = delete;

  // Servers on `context` speak TLS 1.2 or newer and show what is in the files at each handshake.
  // Clients may show a certificate where there are authorities for it; unless they must, a bad one
  // does not end the handshake, see VerifiedClient.
  void InstallOn(SSL_CTX* context);

 private:
  struct Files;
  struct State;
  explicit ServingCertificate(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The certificate that the client of a server's connection has shown and that one of the
// authorities has signed for clients; else null. Owned by the connection.
X509* VerifiedClient(const SSL* connection);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_SERVING_CERTIFICATE_H_
