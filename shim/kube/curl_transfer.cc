#include "shim/kube/curl_transfer.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::kube {
namespace {

// Certificates of a new authority are not trusted before the file is reread: until then all
// requests fail.
constexpr absl::Duration kAuthorityPeriod = absl::Seconds(1);

constexpr size_t kMaxHeaderBytes = 64 << 10;

// Detects a dead path within 30 s: by probes if nothing is in flight, otherwise by the user
// timeout.
int SetSocketOptions(void* resets, curl_socket_t fd, curlsocktype) {
  auto set = [fd](int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
  // Closing discards what was not sent yet, and the kernel does so too when the process dies.
  // Otherwise the kernel would keep sending a write whose process has ended.
  const linger no_linger = {1, 0};
  if (resets != nullptr) setsockopt(fd, SOL_SOCKET, SO_LINGER, &no_linger, sizeof(no_linger));
  // Exec credential plugins must not inherit the connection.
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  return CURL_SOCKOPT_OK;
}

void SetBlob(CURL* easy, CURLoption option, const std::string& pem) {
  curl_blob blob;
  blob.data = const_cast<char*>(pem.data());
  blob.len = pem.size();
  blob.flags = CURL_BLOB_COPY;
  curl_easy_setopt(easy, option, &blob);
}

// OpenSSL would add the authority, which it knows from verifying the server, to our certificate.
// The API server verifies every certificate of the chain for every request, so this would double
// its cost of authentication. Certificates in the client's own file are sent.
CURLcode SendOnlyOwnCertificates(CURL*, void* context, void*) {
  SSL_CTX_set_mode(static_cast<SSL_CTX*>(context), SSL_MODE_NO_AUTO_CHAIN);
  return CURLE_OK;
}

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127.");
}

}  // namespace

void InitCurl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialised;
}

bool HeaderReader::Add(absl::string_view line) {
  bytes_ += line.size();
  if (bytes_ > kMaxHeaderBytes) return false;
  line = absl::StripSuffix(absl::StripSuffix(line, "\n"), "\r");
  if (absl::StartsWith(line, "HTTP/")) {
    // A new header block: discard an interim answer (1xx).
    *this = HeaderReader();
    size_t space = line.find(' ');
    if (space != absl::string_view::npos) {
      (void)absl::SimpleAtoi(line.substr(space + 1, 3), &http_status_);
    }
    return true;
  }
  if (line.empty()) {
    complete_ = http_status_ >= 200;
    return true;
  }
  size_t colon = line.find(':');
  if (colon == absl::string_view::npos) return true;
  absl::string_view name = line.substr(0, colon);
  absl::string_view value = absl::StripAsciiWhitespace(line.substr(colon + 1));
  if (absl::EqualsIgnoreCase(name, "content-type")) {
    content_type_ = std::string(value);
  } else if (absl::EqualsIgnoreCase(name, "retry-after")) {
    int64_t seconds;
    // API servers do not use the date form.
    if (absl::SimpleAtoi(value, &seconds) && seconds >= 0) {
      has_retry_after_ = true;
      retry_after_ = absl::Seconds(std::min<int64_t>(seconds, 3600));
    }
  }
  return true;
}

CurlSetup::CurlSetup(ClientConfig config, std::string user_agent)
    : config_(std::move(config)),
      user_agent_(std::move(user_agent)),
      ca_file_(config_.ca_file, kAuthorityPeriod),
      url_base_(std::string(absl::StripSuffix(config_.server, "/"))) {
  absl::string_view rest = url_base_;
  size_t scheme_end = rest.find("://");
  if (scheme_end == absl::string_view::npos) return;
  const std::string scheme(rest.substr(0, scheme_end));
  rest.remove_prefix(scheme_end + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view authority = rest.substr(0, slash);
  const absl::string_view prefix = rest.substr(slash);
  absl::string_view host = authority;
  absl::string_view port = scheme == "https" ? "443" : "80";
  const size_t colon = authority.rfind(':');
  if (colon != absl::string_view::npos && authority.find(']', colon) == absl::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  loopback_ = IsLoopback(host);
  if (!config_.tls_server_name.empty()) {
    host_header_ = std::string(authority);
    connect_to_.reset(curl_slist_append(nullptr, absl::StrCat("::", host, ":", port).c_str()));
    url_base_ = absl::StrCat(scheme, "://", config_.tls_server_name, ":", port, prefix);
  }
}

absl::Status CurlSetup::PrepareTls(CURL* easy, const Credentials& credentials, absl::Time now) {
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  // A resumed session would carry an identity that may have been replaced.
  curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  if (config_.insecure_skip_tls_verify) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  } else if (!config_.ca_file.empty() || !config_.ca_pem.empty()) {
    std::string pem = config_.ca_pem;
    if (!config_.ca_file.empty()) {
      auto content = ca_file_.Get(now);
      if (!content.ok()) return content.status();
      pem = *std::move(content);
    }
    // Trust only these authorities: libcurl would also use the system's directory.
    curl_easy_setopt(easy, CURLOPT_CAINFO, nullptr);
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
    SetBlob(easy, CURLOPT_CAINFO_BLOB, pem);
  }
  if (!credentials.client_certificate_pem.empty()) {
    curl_easy_setopt(easy, CURLOPT_SSLCERTTYPE, "PEM");
    SetBlob(easy, CURLOPT_SSLCERT_BLOB, credentials.client_certificate_pem);
    curl_easy_setopt(easy, CURLOPT_SSLKEYTYPE, "PEM");
    SetBlob(easy, CURLOPT_SSLKEY_BLOB, credentials.client_key_pem);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, &SendOnlyOwnCertificates);
  }
  return absl::OkStatus();
}

absl::Status CurlSetup::Prepare(CURL* easy, const ApiRequest& request,
                                const Credentials& credentials, bool multiplex, absl::Time now,
                                curl_slist** headers) {
  curl_easy_setopt(easy, CURLOPT_URL, absl::StrCat(url_base_, request.path).c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, user_agent_.c_str());
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, &SetSocketOptions);
  // Watches write nothing that could be late.
  curl_easy_setopt(easy, CURLOPT_SOCKOPTDATA, multiplex ? this : nullptr);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
  if (!config_.proxy_url.empty()) {
    curl_easy_setopt(easy, CURLOPT_PROXY, config_.proxy_url.c_str());
  } else if (loopback_) {
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
  }
  if (multiplex) {
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_2TLS});
    // Waits for the handshake of the first connection instead of opening a second one. Without TLS,
    // only the first answer ends that wait, so all requests would wait for it.
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, absl::StartsWith(url_base_, "https:") ? 1L : 0L);
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
  }
  if (absl::StartsWith(url_base_, "https:")) {
    absl::Status tls = PrepareTls(easy, credentials, now);
    if (!tls.ok()) return tls;
  }
  auto add = [headers](const std::string& line) {
    *headers = curl_slist_append(*headers, line.c_str());
  };
  if (connect_to_ != nullptr) {
    curl_easy_setopt(easy, CURLOPT_CONNECT_TO, connect_to_.get());
    add(absl::StrCat("Host: ", host_header_));
  }
  add(absl::StrCat("Accept: ", request.accept));
  add("Expect:");
  if (!request.body.empty()) add(absl::StrCat("Content-Type: ", request.content_type));
  if (!credentials.bearer_token.empty()) {
    add(absl::StrCat("Authorization: Bearer ", credentials.bearer_token));
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *headers);
  return absl::OkStatus();
}

absl::string_view CurlErrorText(CURLcode code, const char* detail) {
  return detail[0] != '\0' ? detail : curl_easy_strerror(code);
}

absl::Status TransportError(CURL* easy, CURLcode code, const char* detail,
                            const ApiRequest& request) {
  long request_bytes = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request_bytes);
  const Delivery delivery = request_bytes == 0 ? Delivery::kNotSent : Delivery::kUnknown;
  const std::string message =
      absl::StrCat(MethodName(request.method), " ", request.path.substr(0, request.path.find('?')),
                   ": ", CurlErrorText(code, detail));
  return WithDelivery(code == CURLE_OPERATION_TIMEDOUT ? absl::DeadlineExceededError(message)
                                                       : absl::UnavailableError(message),
                      delivery);
}

bool IsLostConnection(CURLcode code) {
  switch (code) {
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

}  // namespace outboard::kube
