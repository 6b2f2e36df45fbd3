#include "cli/command_line.h"

#include <sys/stat.h>

#include <cstdio>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/config/config.h"
#include "shim/http/unix_socket.h"

namespace outboard::cli {
namespace {

constexpr char kUnreachableHint[] =
    R"(; is outboard-shim running?
In a cluster: kubectl -n outboard-system exec deployment/outboard-shim -c shim -- outboard hosts)";

void PrintError(const std::string& name, const absl::Status& error) {
  fprintf(stderr, "outboard %s: %s\n", name.c_str(), std::string(error.message()).c_str());
}

}  // namespace

std::string DefaultServer(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
    return http::ShimAddress().server;
  return absl::StrCat("unix:", path);
}

void AddShimFlags(config::FlagTable* flags, http::ShimAddress* shim) {
  shim->server = DefaultServer(http::kDefaultSocket);
  flags->Text("--server", &shim->server);
  shim->unreachable_hint = kUnreachableHint;
  http::AddCredentialFlags(flags, shim);
}

int UsageError(const std::string& name, const absl::Status& error) {
  PrintError(name, error);
  fprintf(stderr, "Try: outboard %s --help\n", name.c_str());
  return 2;
}

int RunParsed(const std::string& name, const char* help, const absl::Status& parsed,
              bool wants_help, const std::function<absl::StatusOr<std::string>()>& act) {
  if (!parsed.ok()) return UsageError(name, parsed);
  if (wants_help) {
    fputs(help, stdout);
    return 0;
  }
  const absl::StatusOr<std::string> answer = act();
  if (absl::IsInvalidArgument(answer.status())) return UsageError(name, answer.status());
  if (!answer.ok()) {
    PrintError(name, answer.status());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
}

absl::Status CheckHostAddress(const std::string& flag, const std::string& address) {
  const bool is_unix = absl::StartsWith(address, "unix:") && address.size() > 5;
  std::string host;
  int port = 0;
  if (is_unix || (config::SplitHostPort(address, &host, &port) && !host.empty() && port != 0))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " must be unix:PATH or HOST:PORT, not \"", address, "\"",
      absl::StartsWith(address, "/") ? absl::StrCat("; did you mean unix:", address, "?") : ""));
}

absl::Status CheckPodName(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, '/');
  if (parts.size() == 2 && !parts[0].empty() && !parts[1].empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", word, "\" is not NAMESPACE/NAME",
                   parts.size() == 1 ? absl::StrCat("; did you mean default/", word, "?") : ""));
}

}  // namespace outboard::cli
