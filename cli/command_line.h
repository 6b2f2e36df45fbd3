// What the commands of `outboard` share: flags that say which shim, errors and exit codes.
#ifndef OUTBOARD_CLI_COMMAND_LINE_H_
#define OUTBOARD_CLI_COMMAND_LINE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::cli {

// The help of the flags of AddShimFlags, as string literals to put between two others; the last
// line has no line break.
#define OUTBOARD_CREDENTIAL_FLAGS_HELP                                                             \
  "  --token-file FILE      With https://: a bearer token whose owner may access the page\n"       \
  "  --certificate-authority FILE\n"                                                               \
  "                         With https://: the authority of the shim's certificate (default: the " \
  "system's authorities)\n"                                                                        \
  "  --insecure-skip-tls-verify\n"                                                                 \
  "                         With https://: do not verify the shim's certificate"
#define OUTBOARD_SHIM_FLAGS_HELP                                                                   \
  "  --server ADDRESS       The shim's servingAddress HOST:PORT or unix:PATH, or "                 \
  "https://HOST:PORT "                                                                             \
  "of its secureServing\n"                                                                         \
  "                         (default: unix:/run/outboard/shim/shim.sock where that exists, as in " \
  "the shim's container,\n"                                                                        \
  "                         else 127.0.0.1:10269)\n" OUTBOARD_CREDENTIAL_FLAGS_HELP

// The address of a shim whose socket is the file `path` if there is one, else the default port.
std::string DefaultServer(const std::string& path);

// Adds --server and the flags for its credentials.
void AddShimFlags(config::FlagTable* flags, http::ShimAddress* shim);

// Prints the error of `outboard NAME` on standard error. Returns 2, the exit code for invalid
// usage.
int UsageError(const std::string& name, const absl::Status& error);

// Runs `outboard NAME`: prints `help` if `wants_help`, else the result of `act`. Errors go to
// standard error. Returns the exit code: 0 success; 1 `act` failed; 2 invalid usage, also if `act`
// returned INVALID_ARGUMENT.
int RunParsed(const std::string& name, const char* help, const absl::Status& parsed,
              bool wants_help, const std::function<absl::StatusOr<std::string>()>& act);

// The same for the command line of one command, a struct with a member `help`. Calls `act` with it.
template <typename Line, typename Act>
int RunCommand(const std::string& name, const char* help, const absl::StatusOr<Line>& line,
               Act act) {
  return RunParsed(name, help, line.status(), line.ok() && line->help,
                   [&]() -> absl::StatusOr<std::string> { return act(*line); });
}

// INVALID_ARGUMENT naming `flag` unless the address has the form unix:PATH or HOST:PORT.
absl::Status CheckHostAddress(const std::string& flag, const std::string& address);

// INVALID_ARGUMENT unless the word is NAMESPACE/NAME.
absl::Status CheckPodName(const std::string& word);

}  // namespace outboard::cli

#endif  // OUTBOARD_CLI_COMMAND_LINE_H_
