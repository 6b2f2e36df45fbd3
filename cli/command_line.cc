#include "cli/command_line.h"

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::cli {
namespace {

void PrintError(const std::string& name, const absl::Status& error) {
  fprintf(stderr, "outboard %s: %s\n", name.c_str(), std::string(error.message()).c_str());
}

}  // namespace

void AddShimFlags(config::FlagTable* flags, http::ShimAddress* shim) {
  flags->Text("--server", &shim->server);
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
  if (!answer.ok()) {
    PrintError(name, answer.status());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
}

absl::Status CheckPodName(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, '/');
  if (parts.size() == 2 && !parts[0].empty() && !parts[1].empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is not NAMESPACE/NAME"));
}

}  // namespace outboard::cli
