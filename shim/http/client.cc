#include "shim/http/client.h"

#include <httplib.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::http {

namespace {

bool IsHttps(const ShimAddress& shim) { return absl::StartsWith(shim.server, "https://"); }

absl::StatusOr<std::unique_ptr<httplib::Client>> NewClient(const ShimAddress& shim,
                                                           absl::Duration timeout) {
  constexpr int kConnectSeconds = 5;
  auto client = std::make_unique<httplib::Client>(
      absl::StrContains(shim.server, "://") ? shim.server : absl::StrCat("http://", shim.server));
  if (!client->is_valid())
    return absl::InvalidArgumentError(
        absl::StrCat("--server ", shim.server, " is not HOST:PORT or https://HOST:PORT"));
  client->set_connection_timeout(kConnectSeconds);
  client->set_read_timeout(absl::ToInt64Seconds(timeout));
  if (!shim.token_file.empty()) {
    if (!IsHttps(shim))
      return absl::InvalidArgumentError("a token is sent over https:// only; check --server");
    std::ifstream file(shim.token_file);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::string token(absl::StripAsciiWhitespace(text));
    if (token.empty())
      return absl::InvalidArgumentError(absl::StrCat("cannot read a token from ", shim.token_file));
    client->set_bearer_token_auth(token);
  }
  if (!IsHttps(shim)) return client;
  client->enable_server_certificate_verification(!shim.insecure_skip_tls_verify);
  if (!shim.certificate_authority.empty()) {
    if (access(shim.certificate_authority.c_str(), R_OK) != 0)
      return absl::InvalidArgumentError(absl::StrCat("cannot read ", shim.certificate_authority));
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
    const bool untrusted = result.error() == httplib::Error::SSLServerVerification ||
                           result.error() == httplib::Error::SSLLoadingCerts;
    return absl::UnavailableError(absl::StrCat(
        "cannot reach a shim at ", shim.server, ": ", httplib::to_string(result.error()),
        untrusted ? "; set --certificate-authority to the authority of the shim's certificate"
                  : "; set --server to the shim's servingAddress, or to https:// and its "
                    "secureServing address"));
  }
  if (result->status == 200) return result->body;
  std::string said = result->body.empty()
                         ? absl::StrCat("the shim returned status ", result->status)
                         : Said(result->body);
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
