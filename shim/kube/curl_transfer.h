// One HTTP exchange over libcurl: its options and its answer. Internal to CurlApiClient.
#ifndef OUTBOARD_SHIM_KUBE_CURL_TRANSFER_H_
#define OUTBOARD_SHIM_KUBE_CURL_TRANSFER_H_

#include <curl/curl.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/kube/api_client.h"
#include "shim/kube/client_config.h"

namespace outboard::kube {

// Parses the headers of an answer from libcurl, line by line.
//
// Threading: thread-compatible.
// Errors: Add returns false for more than 64 KiB of headers.
class HeaderReader {
 public:
  bool Add(absl::string_view line);

  bool complete() const { return complete_; }
  int http_status() const { return http_status_; }
  const std::string& content_type() const { return content_type_; }
  absl::Duration retry_after() const { return retry_after_; }
  bool has_retry_after() const { return has_retry_after_; }

 private:
  size_t bytes_ = 0;
  bool complete_ = false;
  int http_status_ = 0;
  std::string content_type_;
  bool has_retry_after_ = false;
  absl::Duration retry_after_ = absl::ZeroDuration();
};

// Frees libcurl's lists and handles.
struct CurlDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, CurlDeleter>;
using CurlEasy = std::unique_ptr<CURL, CurlDeleter>;

// The part of every exchange that depends on the server, not on the request. Rereads the CA file
// every second.
//
// Threading: thread-compatible; one object per thread.
class CurlSetup {
 public:
  CurlSetup(ClientConfig config, std::string user_agent);

  // Sets all options except callbacks and body on a reset handle. The list in `headers` must
  // outlive the exchange. `multiplex`: HTTP/2 on a shared connection, otherwise HTTP/1.1 on its own
  // connection.
  absl::Status Prepare(CURL* easy, const ApiRequest& request, const Credentials& credentials,
                       bool multiplex, absl::Time now, curl_slist** headers);

  const ClientConfig& config() const { return config_; }

 private:
  absl::Status PrepareTls(CURL* easy, const Credentials& credentials, absl::Time now);

  const ClientConfig config_;
  const std::string user_agent_;
  ReloadingFile ca_file_;
  std::string url_base_;     // With tls_server_name as the host, if set.
  std::string host_header_;  // The real host, if url_base_ has another.
  CurlList connect_to_;
  bool loopback_ = false;
};

// libcurl's text for a request that had no answer.
absl::string_view CurlErrorText(CURLcode code, const char* detail);

// The status of an exchange that ended without an answer, marked with its Delivery.
absl::Status TransportError(CURL* easy, CURLcode code, const char* detail,
                            const ApiRequest& request);
// Whether client-go would retry a GET after this error.
bool IsLostConnection(CURLcode code);

// Calls curl_global_init exactly once.
void InitCurl();

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_CURL_TRANSFER_H_
