// Credentials for the API server, and their renewal.
#ifndef OUTBOARD_SHIM_KUBE_CREDENTIALS_H_
#define OUTBOARD_SHIM_KUBE_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace outboard::kube {

// One identity at one moment. Immutable; a rotation creates a new object.
struct Credentials {
  std::string bearer_token;
  std::string client_certificate_pem;
  std::string client_key_pem;
};
using CredentialsPtr = std::shared_ptr<const Credentials>;

// A file that others replace. Rereads it when older than `period`; keeps the last good content
// while the file is missing, unreadable or empty.
//
// Threading: thread-safe.
// Errors: only before the first successful read.
class ReloadingFile {
 public:
  ReloadingFile(std::string path, absl::Duration period);

  absl::StatusOr<std::string> Get(absl::Time now);
  // Forces a reread at the next Get.
  void Invalidate();

 private:
  const std::string path_;
  const absl::Duration period_;
  absl::Mutex mutex_;
  absl::Time read_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  std::string content_ ABSL_GUARDED_BY(mutex_);
};

// Provides the current credentials before every request and every reconnect.
//
// Threading: thread-safe; never blocks for longer than a file is read.
// Lifetime: shared by the clients that use it.
// Errors: Get fails if there are no usable credentials; a failed refresh keeps the old ones while
// they last.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  virtual absl::StatusOr<CredentialsPtr> Get(absl::Time now) = 0;
  // The server answered 401 to `used`: check for newer credentials at the next Get.
  virtual void Rejected(const CredentialsPtr& used, absl::Time now) {}
  // Whether newer credentials are being fetched: a caller that Get gave none, or rejected ones, may
  // wait for them. Call it before Get, which then returns the result of what has just ended.
  virtual bool Refreshing() { return false; }
};
// How often callers that wait for credentials look again.
inline constexpr absl::Duration kCredentialPause = absl::Milliseconds(20);

// Identity of a kubeconfig user or a service account: each part is a value or a file.
struct StaticCredentialOptions {
  std::string token;
  std::string token_file;  // Takes precedence over `token`, as in client-go.
  std::string client_certificate_pem;
  std::string client_certificate_file;
  std::string client_key_pem;
  std::string client_key_file;
  absl::Duration token_period = absl::Seconds(60);
  absl::Duration certificate_period = absl::Minutes(5);
};

// No credentials, fixed values or reloaded files.
std::shared_ptr<CredentialSource> MakeStaticCredentials(StaticCredentialOptions options);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CREDENTIALS_H_
