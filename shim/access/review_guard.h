// Who may see the shim's pages: the API server says who somebody is and what they may.
#ifndef OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_
#define OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/access/expiring_cache.h"
#include "shim/http/server.h"
#include "shim/kube/api_client.h"

namespace outboard::access {

struct ReviewGuardOptions {
  // As kube-scheduler: how long an answer of the API server counts, of either kind.
  absl::Duration token_ttl = absl::Seconds(10);
  absl::Duration allowed_ttl = absl::Seconds(10);
  absl::Duration refused_ttl = absl::Seconds(10);
  // Of tokens, and of decisions.
  size_t max_entries = 1024;
  // Of one request to the API server.
  absl::Duration timeout = absl::Seconds(5);
  std::function<absl::Time()> clock = [] { return absl::Now(); };
  // Called with every verdict: allowed, unauthenticated, forbidden or unavailable.
  std::function<void(absl::string_view)> on_verdict;
};

// Somebody who is known.
struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

// Judges by TokenReview and SubjectAccessReview, as Kubernetes' components do: a verified client
// certificate counts before a token, and nobody is anonymous. Errors of the API server are not
// cached: 503 where it cannot be asked, 500 where it does not let the shim ask.
//
// Threading: Check may be called from any thread but the client's, and blocks it for at most two
// requests. Lifetime: the client outlives it. Tokens are kept only as salted digests.
class ReviewGuard {
 public:
  ReviewGuard(kube::ApiClient* client, ReviewGuardOptions options);

  http::Verdict Check(const http::PageRequest& request);

 private:
  http::Verdict Judge(const http::PageRequest& request);
  // Nobody: the token is not one. Errors: UNAVAILABLE or INTERNAL, for people.
  absl::StatusOr<std::optional<User>> Authenticate(const std::string& token);
  absl::StatusOr<http::Verdict> Authorize(const User& user, const http::PageRequest& request);
  // The answer's JSON text.
  absl::StatusOr<std::string> Ask(const char* path, const char* what, std::string body);

  kube::ApiClient* const client_;
  const ReviewGuardOptions options_;
  const std::string salt_;
  ExpiringCache<std::optional<User>> tokens_;
  ExpiringCache<http::Verdict> decisions_;
};

}  // namespace outboard::access

#endif  // OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_
