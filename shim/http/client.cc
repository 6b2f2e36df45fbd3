#include "shim/http/client.h"

#include <errno.h>
#include <httplib.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shim/http/unix_socket.h"

namespace outboard::http {

namespace {

bool IsHttps(const ShimAddress& shim) { return absl::StartsWith(shim.server, "https://"); }

// The system's reason why nothing answers there, which the library does not keep.
std::string WhyUnreachable(absl::string_view server) {
  if (const std::string path = SocketPathOf(server); !path.empty()) {
    const absl::Status connected = TryConnect(path);
    return connected.ok() ? "the connection broke" : std::string(connected.message());
  }
  const bool is_https = absl::ConsumePrefix(&server, "https://");
  absl::ConsumePrefix(&server, "http://");
  std::pair<std::string, std::string> host_and_port(server, is_https ? "443" : "80");
  if (const size_t colon = server.rfind(':');
      colon != absl::string_view::npos && !absl::EndsWith(server, "]"))
    host_and_port = {std::string(server.substr(0, colon)), std::string(server.substr(colon + 1))};
  absl::string_view host = host_and_port.first;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(std::string(host).c_str(), host_and_port.second.c_str(), &wanted, &found);
      error != 0)
    return gai_strerror(error);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  const int connection =
      socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  const timeval patience = {1, 0};
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const bool connected = connect(connection, found->ai_addr, found->ai_addrlen) == 0;
  const int error = errno;
  close(connection);
  if (connected) return "the connection broke";
  return error == EINPROGRESS ? "no answer to the attempt to connect" : strerror(error);
}

// Whether the port is a number, if there is one. The library passes any text on to the resolver.
bool HasValidPort(absl::string_view server) {
  if (const size_t scheme = server.find("://"); scheme != absl::string_view::npos)
    server.remove_prefix(scheme + 3);
  server = server.substr(0, server.find('/'));
  const size_t colon = server.rfind(':');
  if (colon == absl::string_view::npos || absl::EndsWith(server, "]")) return true;
  int port = 0;
  return absl::SimpleAtoi(server.substr(colon + 1), &port) && port >= 1 && port <= 65535;
}

// Errors: INVALID_ARGUMENT naming the flag, also if only white space is in the file.
absl::StatusOr<std::string> ReadFlagFile(absl::string_view flag, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  // Reading a directory fails, which an iterator reports by an exception and a stream in errno.
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const int error = errno;
  if (!absl::StripAsciiWhitespace(text.str()).empty()) return text.str();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", path, ": ", error == 0 ? "the file is empty" : strerror(error)));
}

absl::StatusOr<std::unique_ptr<httplib::Client>> NewClient(const ShimAddress& shim,
                                                           absl::Duration timeout) {
  constexpr int kConnectSeconds = 5;
  if (absl::StartsWith(shim.server, "/")) {
    return absl::InvalidArgumentError(absl::StrCat(shim.flag,
                                                   " must be HOST:PORT, unix:PATH or "
                                                   "https://HOST:PORT, not \"",
                                                   shim.server,
                                                   "\"; did you mean unix:", shim.server, "?"));
  }
  // For other schemes the library throws.
  const bool is_http = absl::StartsWith(shim.server, "http://") || IsHttps(shim);
  const absl::Status not_an_address = absl::InvalidArgumentError(absl::StrCat(
      shim.flag, " must be HOST:PORT, unix:PATH or https://HOST:PORT, not \"", shim.server, "\""));
  std::unique_ptr<httplib::Client> client;
  if (absl::StartsWith(shim.server, "unix:")) {
    const std::string path = SocketPathOf(shim.server);
    if (path.empty()) return not_an_address;
    // The library takes a relative path with a colon for a host and its port.
    client = std::make_unique<httplib::Client>(path[0] == '/' ? path : absl::StrCat("./", path));
    client->set_address_family(AF_UNIX);
    client->set_default_headers({{"Host", "localhost"}});
  } else {
    if (absl::StrContains(shim.server, "://") && !is_http) return not_an_address;
    if (!HasValidPort(shim.server)) return not_an_address;
    client = std::make_unique<httplib::Client>(
        absl::StrContains(shim.server, "://") ? shim.server : absl::StrCat("http://", shim.server));
  }
  if (!client->is_valid()) return not_an_address;
  client->set_connection_timeout(kConnectSeconds);
  client->set_read_timeout(absl::ToInt64Seconds(timeout));
  if (!IsHttps(shim)) {
    if (!shim.token_file.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("--token-file: a token is sent over https:// only, and ", shim.flag, " is ",
                       shim.server));
    if (!shim.certificate_authority.empty() || shim.insecure_skip_tls_verify)
      return absl::InvalidArgumentError(absl::StrCat(
          shim.insecure_skip_tls_verify ? "--insecure-skip-tls-verify" : "--certificate-authority",
          " is for https:// only, and ", shim.flag, " is ", shim.server));
    return client;
  }
  if (!shim.token_file.empty()) {
    const absl::StatusOr<std::string> text = ReadFlagFile("--token-file", shim.token_file);
    if (!text.ok()) return text.status();
    client->set_bearer_token_auth(std::string(absl::StripAsciiWhitespace(*text)));
  }
  client->enable_server_certificate_verification(!shim.insecure_skip_tls_verify);
  if (!shim.certificate_authority.empty()) {
    const absl::StatusOr<std::string> text =
        ReadFlagFile("--certificate-authority", shim.certificate_authority);
    if (!text.ok()) return text.status();
    if (!absl::StrContains(*text, "-----BEGIN "))
      return absl::InvalidArgumentError(absl::StrCat(
          "--certificate-authority ", shim.certificate_authority, ": has no certificate in PEM"));
    client->set_ca_cert_path(shim.certificate_authority);
  }
  return client;
}

// The message of a Kubernetes Status, or the unchanged text.
std::string Said(const std::string& body) {
  const nlohmann::json parsed = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_object() && parsed.contains("message") && parsed["message"].is_string())
    return parsed["message"].get<std::string>();
  return std::string(absl::StripTrailingAsciiWhitespace(body));
}

absl::StatusOr<std::string> BodyOf(const ShimAddress& shim, const httplib::Result& result) {
  if (!result) {
    const std::string what = absl::StrCat("cannot reach a shim at ", shim.server, ": ");
    switch (result.error()) {
      case httplib::Error::SSLServerVerification:
      case httplib::Error::SSLLoadingCerts:
        return absl::UnavailableError(
            absl::StrCat(what, httplib::to_string(result.error()),
                         "; set --certificate-authority to the authority of the shim's "
                         "certificate"));
      case httplib::Error::Connection:
      case httplib::Error::ConnectionTimeout:
        return absl::UnavailableError(
            absl::StrCat(what, WhyUnreachable(shim.server), shim.unreachable_hint));
      case httplib::Error::SSLConnection:
        return absl::UnavailableError(
            absl::StrCat(what, "no TLS connection; if it serves plain HTTP, write ",
                         absl::StripPrefix(shim.server, "https://")));
      case httplib::Error::Read:
        if (!SocketPathOf(shim.server).empty()) {
          return absl::UnavailableError(
              absl::StrCat(what,
                           "no HTTP answer; the socket of a plugin host is for --host of other "
                           "commands"));
        }
        return absl::UnavailableError(absl::StrCat(
            what, "no HTTP answer", IsHttps(shim) ? "" : "; if it serves HTTPS, write https://",
            IsHttps(shim) ? "" : shim.server));
      default:
        return absl::UnavailableError(
            absl::StrCat(what, httplib::to_string(result.error()), shim.unreachable_hint));
    }
  }
  if (result->status == 200) return result->body;
  if (result->body.empty()) {
    return absl::UnavailableError(absl::StrCat(shim.server, " answered with status ",
                                               result->status,
                                               "; is this the address of an outboard-shim?"));
  }
  std::string said = Said(result->body);
  if (result->status == 401) absl::StrAppend(&said, "; see --token-file");
  return absl::UnavailableError(said);
}

}  // namespace

void AddCredentialFlags(config::FlagTable* flags, ShimAddress* shim) {
  flags->Text("--token-file", &shim->token_file);
  flags->Text("--certificate-authority", &shim->certificate_authority);
  flags->Switch("--insecure-skip-tls-verify", &shim->insecure_skip_tls_verify);
}

absl::StatusOr<std::string> GetPage(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout) {
  const absl::StatusOr<std::unique_ptr<httplib::Client>> client = NewClient(shim, timeout);
  if (!client.ok()) return client.status();
  return BodyOf(shim, (*client)->Get(path.c_str(), parameters, httplib::Headers()));
}

absl::StatusOr<std::string> Command(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout) {
  const absl::StatusOr<std::unique_ptr<httplib::Client>> client = NewClient(shim, timeout);
  if (!client.ok()) return client.status();
  const std::string target = httplib::append_query_params(path, parameters);
  return BodyOf(shim,
                (*client)->Post(target.c_str(), {{"X-Outboard-Command", "1"}}, "", "text/plain"));
}

}  // namespace outboard::http
