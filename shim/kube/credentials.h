// Who we are to the API server, and how that is kept fresh.
#ifndef OUTBOARD_SHIM_KUBE_CREDENTIALS_H_
#define OUTBOARD_SHIM_KUBE_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace outboard::kube {

// One identity as it is at a moment. Immutable; a rotation makes a new one.
struct Credentials {
  std::string bearer_token;
  std::string client_certificate_pem;
  std::string client_key_pem;
};
using CredentialsPtr = std::shared_ptr<const Credentials>;

// A file that others replace: read again when it is older than `period`, and the last good content
// is kept while the file is missing, unreadable or empty.
//
// Threading: thread-safe. Errors: only until the first successful read.
class ReloadingFile {
 public:
  ReloadingFile(std::string path, absl::Duration period);

  absl::StatusOr<std::string> Get(absl::Time now);
  // Reads at the next Get, whatever the age.
  void Invalidate();

 private:
  const std::string path_;
  const absl::Duration period_;
  absl::Mutex mutex_;
  absl::Time read_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string content_ ABSL_GUARDED_BY(mutex_);
};

// Gives the current credentials to a client, before every request and every reconnect.
//
// Threading: thread-safe. Lifetime: shared by the clients that use it.
// Errors: Get fails only where no usable credentials were ever had; a failed refresh keeps the old.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  virtual absl::StatusOr<CredentialsPtr> Get(absl::Time now) = 0;
  // The server answered 401 to `used`: look for something newer at the next Get.
  virtual void Rejected(const CredentialsPtr& used, absl::Time now) {}
};

// What a kubeconfig user or a service account names: each part either given or in a file.
struct StaticCredentialOptions {
  std::string token;
  std::string token_file;  // Wins over `token`, as in client-go.
  std::string client_certificate_pem;
  std::string client_certificate_file;
  std::string client_key_pem;
  std::string client_key_file;
  absl::Duration token_period = absl::Seconds(60);
  absl::Duration certificate_period = absl::Minutes(5);
};

// Nothing, fixed values or reloaded files.
std::shared_ptr<CredentialSource> MakeStaticCredentials(StaticCredentialOptions options);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CREDENTIALS_H_
