// Decides who may see the shim's pages: the API server authenticates and authorizes each user.
#ifndef OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_
#define OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/access/expiring_cache.h"
#include "shim/clock.h"
#include "shim/http/server.h"
#include "shim/kube/api_client.h"

namespace outboard::access {

struct ReviewGuardOptions {
  // As in kube-scheduler: how long positive and negative answers of the API server are valid.
  absl::Duration token_ttl = absl::Seconds(10);
  absl::Duration allowed_ttl = absl::Seconds(10);
  absl::Duration refused_ttl = absl::Seconds(10);
  // For each cache: tokens, and decisions.
  size_t max_entries = 1024;
  // For one request to the API server.
  absl::Duration timeout = absl::Seconds(5);
  std::function<absl::Time()> clock = [] { return SteadyNow(); };
  // Called with every decision: allowed, unauthenticated, forbidden or unavailable.
  std::function<void(absl::string_view)> on_verdict;
};

// An authenticated user.
struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

// Authenticates and authorizes by TokenReview and SubjectAccessReview, as Kubernetes' components
// do. A verified client certificate takes precedence over a token. Anonymous requests are rejected.
// Errors of the API server are not cached. Tokens are stored only as salted digests.
//
// Threading: Check may be called from any thread except the client's. It blocks for at most two
// requests.
// Lifetime: the client outlives this object.
// Errors: 503 if the API server is unavailable, 500 if it does not allow the shim to create
// reviews.
class ReviewGuard {
 public:
  ReviewGuard(kube::ApiClient* client, ReviewGuardOptions options);

  http::Verdict Check(const http::PageRequest& request);

 private:
  http::Verdict Decide(const http::PageRequest& request);
  // nullopt: the token is invalid.
  // Errors: UNAVAILABLE or INTERNAL, with readable messages.
  absl::StatusOr<std::optional<User>> Authenticate(const std::string& token);
  absl::StatusOr<http::Verdict> Authorize(const User& user, const http::PageRequest& request);
  // Returns the JSON text of the answer.
  absl::StatusOr<std::string> Ask(const char* path, const char* what, std::string body);

  kube::ApiClient* const client_;
  const ReviewGuardOptions options_;
  const std::string salt_;
  ExpiringCache<std::optional<User>> tokens_;
  ExpiringCache<http::Verdict> decisions_;
};

}  // namespace outboard::access

#endif  // OUTBOARD_SHIM_ACCESS_REVIEW_GUARD_H_
