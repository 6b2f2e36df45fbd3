// Gets pages of a running shim.
#ifndef OUTBOARD_SHIM_HTTP_CLIENT_H_
#define OUTBOARD_SHIM_HTTP_CLIENT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/config/flag_table.h"

namespace outboard::http {

// Address of a shim, and credentials for both sides.
struct ShimAddress {
  // HOST:PORT or unix:PATH as in servingAddress, HOST:PORT optionally with http://; or
  // https://HOST:PORT as in secureServing.
  std::string server = "127.0.0.1:10269";
  // The fields below apply to https:// only. Read at each request; empty: no token.
  std::string token_file;
  // PEM; empty: the system's authorities.
  std::string certificate_authority;
  bool insecure_skip_tls_verify = false;
  // Appended to the error if nothing answers.
  std::string unreachable_hint;
  // The flag that gives `server`, for errors.
  std::string flag = "--server";
};

// Adds --token-file, --certificate-authority and --insecure-skip-tls-verify to a table of flags.
void AddCredentialFlags(config::FlagTable* flags, ShimAddress* shim);

// Returns the body of the page. `timeout` applies to the answer; connecting may take 5 s.
//
// Threading: blocks.
// Errors: with readable messages. UNAVAILABLE without an answer, or with the shim's message
// instead of the page. INVALID_ARGUMENT for an address of another form, for a token that would be
// sent unencrypted, and for unreadable files.
absl::StatusOr<std::string> GetPage(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

// Sends a command: a POST without a body. Returns the body of the answer; otherwise like GetPage.
absl::StatusOr<std::string> Command(const ShimAddress& shim, const std::string& path,
                                    const std::multimap<std::string, std::string>& parameters,
                                    absl::Duration timeout);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_CLIENT_H_
