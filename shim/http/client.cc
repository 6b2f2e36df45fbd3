#include "shim/http/client.h"

#include <httplib.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace outboard::http {

absl::StatusOr<std::string> GetPage(const std::string& server, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout) {
  constexpr int kConnectSeconds = 5;
  httplib::Client client(absl::StartsWith(server, "http://") ? server
                                                             : absl::StrCat("http://", server));
  client.set_connection_timeout(kConnectSeconds);
  client.set_read_timeout(absl::ToInt64Seconds(timeout));
  const httplib::Result result = client.Get(path.c_str(), parameters, httplib::Headers());
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

}  // namespace outboard::http
