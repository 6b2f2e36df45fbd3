#include "plugin_host/sdk/prometheus/client.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::prometheus {
namespace {

constexpr size_t kMaxTokenBytes = 64 << 10;
constexpr size_t kMaxDetailBytes = 200;

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct Body {
  std::string text;
  bool too_large = false;
};

size_t Append(char* data, size_t, size_t bytes, void* out) {
  auto* body = static_cast<Body*>(out);
  body->too_large = body->text.size() + bytes > Client::kMaxAnswerBytes;
  if (body->too_large) return 0;
  body->text.append(data, bytes);
  return bytes;
}

Answer Failed(Failure failure, std::string detail) {
  detail.resize(std::min(detail.size(), kMaxDetailBytes));
  return {failure, std::move(detail), ""};
}

}  // namespace

// CURL and CURLM are both void for the compiler.
struct Client::Transfer {
  struct EasyDeleter {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct MultiDeleter {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  std::unique_ptr<CURLM, MultiDeleter> multi{curl_multi_init()};
  std::unique_ptr<CURL, EasyDeleter> easy{curl_easy_init()};  // Kept to reuse its connection.
  std::atomic<bool> stopped{false};
};

Client::Client(ServerOptions options) : options_(std::move(options)) {
  static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)once;
  transfer_ = std::make_unique<Transfer>();
}

Client::~Client() = default;

void Client::Stop() {
  transfer_->stopped.store(true);
  curl_multi_wakeup(transfer_->multi.get());
}

Answer Client::Query(absl::string_view expression, absl::Duration lookback) {
  CURL* const easy = transfer_->easy.get();
  CURLM* const multi = transfer_->multi.get();
  if (easy == nullptr || multi == nullptr) return Failed(Failure::kUnreachable, "libcurl failed");
  curl_easy_reset(easy);

  std::unique_ptr<curl_slist, ListDeleter> headers(
      curl_slist_append(nullptr, "Accept: application/json"));
  if (!options_.bearer_token_file.empty()) {
    std::ifstream file(options_.bearer_token_file, std::ios::binary);
    // Of a directory nothing is read; an iterator would throw.
    std::ostringstream text;
    text << file.rdbuf();
    std::string token = text.str();
    absl::StripAsciiWhitespace(&token);
    if (token.empty() || token.size() > kMaxTokenBytes ||
        !std::all_of(token.begin(), token.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c); })) {
      return Failed(Failure::kToken, absl::StrCat("no token in ", options_.bearer_token_file));
    }
    headers.reset(curl_slist_append(headers.release(),
                                    absl::StrCat("Authorization: Bearer ", token).c_str()));
  }
  const std::string url = absl::StrCat(absl::StripSuffix(options_.address, "/"), "/api/v1/query");
  // In the body: some proxies reject an address of this length.
  char* const escaped =
      curl_easy_escape(easy, expression.data(), static_cast<int>(expression.size()));
  std::string form =
      absl::StrCat("timeout=", std::max<int64_t>(1, absl::ToInt64Seconds(options_.timeout)),
                   "s&query=", escaped == nullptr ? "" : escaped);
  if (lookback > absl::ZeroDuration())
    absl::StrAppend(&form, "&lookback_delta=", absl::ToInt64Milliseconds(lookback), "ms");
  curl_free(escaped);
  Body body;
  char reason[CURL_ERROR_SIZE] = "";
  const long timeout = std::max<long>(1, absl::ToInt64Milliseconds(options_.timeout));
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, form.c_str());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(form.size()));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  // Stop must not wait for the resolver.
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Append);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, reason);
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());

  curl_multi_add_handle(multi, easy);
  CURLcode result = CURLE_ABORTED_BY_CALLBACK;
  CURLMcode driven = CURLM_OK;
  while (!transfer_->stopped.load()) {
    int running = 0;
    driven = curl_multi_perform(multi, &running);
    if (driven != CURLM_OK) break;
    if (running == 0) {
      int left = 0;
      const CURLMsg* const message = curl_multi_info_read(multi, &left);
      result = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
      break;
    }
    driven = curl_multi_poll(multi, nullptr, 0, static_cast<int>(timeout), nullptr);
    if (driven != CURLM_OK) break;
  }
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_multi_remove_handle(multi, easy);

  if (transfer_->stopped.load()) return Failed(Failure::kStopped, "stopped");
  if (driven != CURLM_OK) return Failed(Failure::kUnreachable, curl_multi_strerror(driven));
  if (body.too_large) {
    return Failed(Failure::kTooLarge,
                  absl::StrCat("an answer of more than ", kMaxAnswerBytes >> 20, " MiB"));
  }
  const std::string why = reason[0] != '\0' ? reason : curl_easy_strerror(result);
  if (result == CURLE_OPERATION_TIMEDOUT) return Failed(Failure::kTimeout, why);
  if (result != CURLE_OK) return Failed(Failure::kUnreachable, why);
  // Prometheus reports a query's error in a body with status 400, 422 or 503.
  if (status != 200 && !absl::StartsWith(body.text, "{\"status\":\"error\"")) {
    return Failed(Failure::kStatus, absl::StrCat("HTTP status ", status));
  }
  return {Failure::kNone, "", std::move(body.text)};
}

}  // namespace outboard::prometheus
