// Asks a running shim for one of its pages.
#ifndef OUTBOARD_SHIM_HTTP_CLIENT_H_
#define OUTBOARD_SHIM_HTTP_CLIENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace outboard::http {

// Where a shim answers, and what convinces it of us and us of it.
struct ShimAddress {
  // HOST:PORT, as in servingAddress, with or without http://; or https://HOST:PORT, as in
  // secureServing.
  std::string server = "127.0.0.1:10269";
  // What follows is for https:// only. Read at each request; empty: no token.
  std::string token_file;
  // PEM; empty: the system's authorities.
  std::string certificate_authority;
  bool insecure_skip_tls_verify = false;
};

// Takes --server, --token-file, --certificate-authority and --insecure-skip-tls-verify out of a
// command's arguments; without --server it is `server`. Errors: INVALID_ARGUMENT, for people.
absl::StatusOr<ShimAddress> TakeShimFlags(absl::string_view server,
                                          std::vector<std::string>* arguments);

// The body of the page. `timeout` is for the answer; connecting may take 5 s.
//
// Threading: blocks. Errors: UNAVAILABLE in words for people: nobody answers, or what a shim says
// in place of the page; INVALID_ARGUMENT for a token that would go out unencrypted, and files that
// cannot be read.
absl::StatusOr<std::string> GetPage(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

// Asks for something to be done: a POST without a body. The body of the answer; otherwise as
// GetPage.
absl::StatusOr<std::string> Command(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_CLIENT_H_
