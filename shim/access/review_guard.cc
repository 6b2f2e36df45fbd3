#include "shim/access/review_guard.h"

#include <openssl/rand.h>
#include <openssl/sha.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::access {
namespace {

using nlohmann::json;

constexpr size_t kMaxAnswer = size_t{1} << 20;

std::string Random() {
  std::string bytes(32, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return bytes;
}

std::string Digest(const std::string& text) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

// Request data may be invalid UTF-8. Without replacement dump() throws.
std::string Text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string StringOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<std::string> StringsOf(const json& list) {
  std::vector<std::string> strings;
  if (!list.is_array()) return strings;
  for (const json& one : list)
    if (one.is_string()) strings.push_back(one.get<std::string>());
  return strings;
}

// A review's `status`; an empty object if the answer has another form.
json StatusOf(const std::string& answer) {
  const json parsed = json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object() || !parsed.contains("status") || !parsed["status"].is_object())
    return json::object();
  return parsed["status"];
}

bool IsTrue(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

http::Verdict VerdictOf(const absl::Status& status) {
  return {absl::IsUnavailable(status) ? 503 : 500, std::string(status.message())};
}

}  // namespace

ReviewGuard::ReviewGuard(kube::ApiClient* client, ReviewGuardOptions options)
    : client_(client),
      options_(std::move(options)),
      salt_(Random()),
      tokens_(options_.max_entries),
      decisions_(options_.max_entries) {}

http::Verdict ReviewGuard::Check(const http::PageRequest& request) {
  http::Verdict verdict = Decide(request);
  if (options_.on_verdict) {
    options_.on_verdict(verdict.http_status == 200   ? "allowed"
                        : verdict.http_status == 401 ? "unauthenticated"
                        : verdict.http_status == 403 ? "forbidden"
                                                     : "unavailable");
  }
  return verdict;
}

http::Verdict ReviewGuard::Decide(const http::PageRequest& request) {
  User user;
  if (!request.certificate_user.empty()) {
    user.name = request.certificate_user;
    user.groups = request.certificate_groups;
    user.groups.push_back("system:authenticated");
  } else if (request.bearer_token.empty()) {
    return {401, "Unauthorized: a bearer token or a client certificate is required"};
  } else {
    absl::StatusOr<std::optional<User>> known = Authenticate(request.bearer_token);
    if (!known.ok()) return VerdictOf(known.status());
    if (!known->has_value()) return {401, "Unauthorized: the API server rejected the bearer token"};
    user = **std::move(known);
  }
  absl::StatusOr<http::Verdict> verdict = Authorize(user, request);
  return verdict.ok() ? *std::move(verdict) : VerdictOf(verdict.status());
}

absl::StatusOr<std::optional<User>> ReviewGuard::Authenticate(const std::string& token) {
  const std::string key = Digest(salt_ + token);
  if (auto known = tokens_.Find(key, options_.clock())) return *std::move(known);
  const json review = {{"apiVersion", "authentication.k8s.io/v1"},
                       {"kind", "TokenReview"},
                       {"spec", {{"token", token}}}};
  const absl::StatusOr<std::string> answer =
      Ask("/apis/authentication.k8s.io/v1/tokenreviews", "tokenreviews", Text(review));
  if (!answer.ok()) return answer.status();
  const json status = StatusOf(*answer);
  std::optional<User> user;
  if (IsTrue(status, "authenticated") && status.contains("user") && status["user"].is_object()) {
    const json& told = status["user"];
    user.emplace();
    user->name = StringOf(told, "username");
    user->uid = StringOf(told, "uid");
    user->groups = StringsOf(told.value("groups", json::array()));
    const json extra = told.value("extra", json::object());
    if (extra.is_object())
      for (const auto& [name, values] : extra.items()) user->extra[name] = StringsOf(values);
  } else if (status.empty()) {
    return absl::InternalError("invalid TokenReview response from the API server");
  }
  tokens_.Put(key, user, options_.clock() + options_.token_ttl);
  return user;
}

absl::StatusOr<http::Verdict> ReviewGuard::Authorize(const User& user,
                                                     const http::PageRequest& request) {
  json spec = {{"nonResourceAttributes", {{"path", request.path}, {"verb", request.verb}}},
               {"user", user.name},
               {"groups", user.groups}};
  if (!user.uid.empty()) spec["uid"] = user.uid;
  if (!user.extra.empty()) spec["extra"] = user.extra;
  const std::string key = Digest(Text(spec));
  if (auto known = decisions_.Find(key, options_.clock())) return *std::move(known);
  const json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SubjectAccessReview"},
                       {"spec", std::move(spec)}};
  const absl::StatusOr<std::string> answer = Ask(
      "/apis/authorization.k8s.io/v1/subjectaccessreviews", "subjectaccessreviews", Text(review));
  if (!answer.ok()) return answer.status();
  const json status = StatusOf(*answer);
  if (status.empty())
    return absl::InternalError("invalid SubjectAccessReview response from the API server");
  http::Verdict verdict;
  const bool allowed = IsTrue(status, "allowed") && !IsTrue(status, "denied");
  if (!allowed) {
    const std::string reason = StringOf(status, "reason");
    verdict = {403,
               absl::StrCat("forbidden: User \"", user.name, "\" cannot ", request.verb, " path \"",
                            request.path, "\"", reason.empty() ? "" : ": ", reason)};
  }
  decisions_.Put(key, verdict,
                 options_.clock() + (allowed ? options_.allowed_ttl : options_.refused_ttl));
  return verdict;
}

absl::StatusOr<std::string> ReviewGuard::Ask(const char* path, const char* what, std::string body) {
  kube::ApiRequest request;
  request.method = kube::Method::kPost;
  request.path = path;
  request.body = std::move(body);
  request.timeout = options_.timeout;
  request.rate_limited = false;
  request.retry = false;  // The requester of the page is waiting.
  request.max_response_bytes = kMaxAnswer;
  const absl::StatusOr<kube::ApiResponse> answer = client_->Call(std::move(request));
  if (!answer.ok()) {
    return absl::UnavailableError(
        absl::StrCat("authentication and authorization unavailable: API server request failed: ",
                     answer.status().message()));
  }
  if (answer->ok()) return answer->body;
  const absl::Status status = kube::ToStatus(*answer);
  if (answer->http_status == 401 || answer->http_status == 403) {
    return absl::InternalError(absl::StrCat(
        "the API server does not allow this shim to create ", what,
        "; bind its account to the ClusterRole system:auth-delegator (", status.message(), ")"));
  }
  return absl::UnavailableError(absl::StrCat("the API server failed to answer ", what, ", status ",
                                             answer->http_status, ": ", status.message()));
}

}  // namespace outboard::access
