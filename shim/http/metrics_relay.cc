#include "shim/http/metrics_relay.h"

#include <curl/curl.h>

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace outboard::http {
namespace {

// What has arrived. Each limit ends the exchange.
struct Answer {
  size_t header_bytes_left;
  size_t max_bytes;
  bool is_too_long = false;
  std::string body = {};
};

// libcurl's form of a callback: it ends the exchange by returning another number than `count`.
size_t OnHeader(char*, size_t, size_t count, void* user) {
  auto* const answer = static_cast<Answer*>(user);
  if (count > answer->header_bytes_left) {
    answer->is_too_long = true;
    return 0;
  }
  answer->header_bytes_left -= count;
  return count;
}

size_t OnBody(char* data, size_t, size_t count, void* user) {
  auto* const answer = static_cast<Answer*>(user);
  if (count > answer->max_bytes - answer->body.size()) {
    answer->is_too_long = true;
    return 0;
  }
  answer->body.append(data, count);
  return count;
}

}  // namespace

absl::StatusOr<std::string> MetricsRelay::Get(const std::string& address) {
  absl::StatusOr<std::string> text =
      absl::ResourceExhaustedError("too many reads of hosts' metrics are in progress");
  if (++in_progress_ <= limits_.max_concurrent) text = Read(address);
  --in_progress_;
  return text;
}

absl::StatusOr<std::string> MetricsRelay::Read(const std::string& address) const {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (curl == nullptr) return absl::UnavailableError("libcurl cannot be initialized");
  Answer answer = {limits_.max_header_bytes, limits_.max_bytes};
  const std::string url = absl::StrCat("http://", address, "/metrics");
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // whatever the environment says
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS,
                   static_cast<long>(absl::ToInt64Milliseconds(limits_.timeout)));
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, &OnHeader);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &OnBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  const CURLcode ended = curl_easy_perform(curl.get());
  if (answer.is_too_long) {
    return absl::UnavailableError(absl::StrCat(url, ": the answer is longer than ",
                                               limits_.max_bytes, " bytes, or its headers than ",
                                               limits_.max_header_bytes));
  }
  if (ended != CURLE_OK)
    return absl::UnavailableError(absl::StrCat(url, ": ", curl_easy_strerror(ended)));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return absl::UnavailableError(absl::StrCat(url, ": status ", status));
  return std::move(answer.body);
}

}  // namespace outboard::http
