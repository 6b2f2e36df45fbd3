#include "plugin_host/sdk/prometheus/server_args.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/validation.h"

namespace outboard::prometheus {
namespace {

constexpr size_t kMaxNodeLabels = 16;

}  // namespace

bool IsLabelName(absl::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Duration ReadDuration(const sdk::ArgsObject& object, const char* key,
                            absl::Duration otherwise, absl::Duration least, absl::Duration most) {
  const absl::Duration value = object.Duration(key, otherwise);
  if (value < least || value > most) {
    object.Problem(
        key, absl::StrCat("Invalid value: ", absl::FormatDuration(value), ": not in valid range [",
                          absl::FormatDuration(least), ", ", absl::FormatDuration(most), "]"));
    return otherwise;
  }
  return value;
}

ServerOptions ReadServer(const sdk::ArgsObject& object) {
  ServerOptions server;
  server.address = object.String("address", "");
  server.bearer_token_file = object.String("bearerTokenFile", "");
  server.ca_file = object.String("caFile", "");
  server.timeout =
      ReadDuration(object, "timeout", server.timeout, absl::Milliseconds(1), absl::Minutes(1));
  const std::string& address = server.address;
  const bool is_https = absl::StartsWith(address, "https://");
  const size_t host = address.find("://");
  if (address.empty()) {
    object.Problem("address", sdk::RequiredValue("must be the address of Prometheus, such as "
                                                 "http://prometheus.monitoring:9090"));
  } else if ((!is_https && !absl::StartsWith(address, "http://")) || host + 3 >= address.size() ||
             address[host + 3] == '/' ||
             !std::all_of(address.begin(), address.end(),
                          [](unsigned char c) { return absl::ascii_isgraph(c); }) ||
             address.find_first_of("?#@") != std::string::npos) {
    object.Problem("address", sdk::InvalidValue(address,
                                                "must be http://HOST:PORT or https://HOST:PORT, "
                                                "with a path if it has one"));
  } else if (!is_https && !server.bearer_token_file.empty()) {
    object.Problem("bearerTokenFile", sdk::Forbidden("a token is sent over https only"));
  }
  return server;
}

std::vector<std::string> ReadNodeLabels(const sdk::ArgsObject& object, const char* key,
                                        std::vector<std::string> otherwise,
                                        const std::vector<std::string>& reserved) {
  std::vector<std::string> labels = object.Strings(key, std::move(otherwise));
  if (labels.empty() || labels.size() > kMaxNodeLabels) {
    object.Problem(
        key, sdk::InvalidValue(static_cast<int64_t>(labels.size()), "must have 1 to 16 entries"));
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string field = absl::StrCat(key, "[", i, "]");
    if (!IsLabelName(labels[i]) ||
        std::find(reserved.begin(), reserved.end(), labels[i]) != reserved.end())
      object.Problem(
          field, sdk::InvalidValue(labels[i], "must be a Prometheus label that can name a node"));
    const auto before = labels.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(labels.begin(), before, labels[i]) != before)
      object.Problem(field, sdk::DuplicateValue(labels[i]));
  }
  return labels;
}

}  // namespace outboard::prometheus
