#include "shim/http/client.h"

#include <httplib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::http {

namespace {

httplib::Client NewClient(const std::string& server, absl::Duration timeout) {
  constexpr int kConnectSeconds = 5;
  httplib::Client client(absl::StartsWith(server, "http://") ? server
                                                             : absl::StrCat("http://", server));
  client.set_connection_timeout(kConnectSeconds);
  client.set_read_timeout(absl::ToInt64Seconds(timeout));
  return client;
}

absl::StatusOr<std::string> BodyOf(const std::string& server, const httplib::Result& result) {
  if (!result) {
    return absl::UnavailableError(
        absl::StrCat("cannot reach a shim at ", server, ": ", httplib::to_string(result.error()),
                     "; --server names the servingAddress of its configuration"));
  }
  if (result->status == 200) return result->body;
  return absl::UnavailableError(
      result->body.empty() ? absl::StrCat("the shim answered with status ", result->status)
                           : std::string(absl::StripTrailingAsciiWhitespace(result->body)));
}

}  // namespace

absl::StatusOr<std::string> GetPage(const std::string& server, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout) {
  httplib::Client client = NewClient(server, timeout);
  return BodyOf(server, client.Get(path.c_str(), parameters, httplib::Headers()));
}

absl::StatusOr<std::string> Command(const std::string& server, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout) {
  httplib::Client client = NewClient(server, timeout);
  const std::string target = httplib::append_query_params(path, parameters);
  return BodyOf(server,
                client.Post(target.c_str(), {{"X-Outboard-Command", "1"}}, "", "text/plain"));
}

}  // namespace outboard::http
