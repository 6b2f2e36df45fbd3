// A TLS server's certificate, read again when its files change.
#ifndef OUTBOARD_SHIM_EXTENDER_CERTIFICATE_FILES_H_
#define OUTBOARD_SHIM_EXTENDER_CERTIFICATE_FILES_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace outboard::extender {

// PEM files of a server: its certificate with those between it and the authority, its key, and,
// unless the path is empty, the authorities whose clients are let in; then no others are.
//
// The files are looked at when a client comes, at most once a second. What cannot be used (a
// certificate without its key, say, while the two are being replaced) is logged once and changes
// nothing. Connections that stand keep what they were made with, and none is resumed.
// Threading: Attach before the first connection; after that OpenSSL calls it from any thread.
// Lifetime:  outlives the context that it is attached to.
class CertificateFiles {
 public:
  struct Paths {
    std::string cert_file;
    std::string key_file;
    std::string client_ca_file;
  };

  // Errors: INVALID_ARGUMENT, naming the file that cannot be used.
  static absl::StatusOr<std::unique_ptr<CertificateFiles>> Load(Paths paths);
  ~CertificateFiles();
  CertificateFiles(const CertificateFiles&) = delete;
  CertificateFiles& operator=(const CertificateFiles&) = delete;

  // Has the context's connections show what the files hold, over TLS 1.2 or later.
  void Attach(SSL_CTX* context);

 private:
  struct Impl;
  explicit CertificateFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_CERTIFICATE_FILES_H_
