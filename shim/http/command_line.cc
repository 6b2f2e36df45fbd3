#include "shim/http/command_line.h"

#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::http {
namespace {

absl::Status Usage(std::string message) { return absl::InvalidArgumentError(std::move(message)); }

}  // namespace

absl::StatusOr<CommandLine> ParseCommandLine(const CommandShape& shape,
                                             std::vector<std::string> arguments) {
  CommandLine line;
  absl::StatusOr<ShimAddress> shim = TakeShimFlags(line.shim.server, &arguments);
  if (!shim.ok()) return shim.status();
  line.shim = *std::move(shim);
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!absl::StartsWith(flag, "-")) {
      line.words.push_back(flag);
      continue;
    }
    if (flag == "-h" || flag == "--help") {
      line.help = true;
      return line;
    }
    std::string value;
    const size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    if (absl::c_linear_search(shape.switches, flag)) {
      line.flags[flag] = "";
      continue;
    }
    const bool is_output = shape.takes_output && (flag == "-o" || flag == "--output");
    if (!is_output && !absl::c_linear_search(shape.flags, flag))
      return Usage(absl::StrCat("unknown flag ", flag));
    if (equals == std::string::npos) {
      if (i + 1 == arguments.size()) return Usage(absl::StrCat(flag, " needs a value"));
      value = arguments[++i];
    }
    if (!is_output) {
      line.flags[flag] = value;
    } else if (value == "table" || value == "json") {
      line.json = value == "json";
    } else {
      return Usage(absl::StrCat(flag, " must be table or json, not \"", value, "\""));
    }
  }
  return line;
}

int RunParsed(const std::string& name, const char* help, const absl::Status& parsed,
              bool wants_help, const std::function<absl::StatusOr<std::string>()>& act) {
  const auto complain = [&name](const absl::Status& status) {
    fprintf(stderr, "outboard %s: %s\n", name.c_str(), std::string(status.message()).c_str());
  };
  if (!parsed.ok()) {
    complain(parsed);
    fprintf(stderr, "Try: outboard %s --help\n", name.c_str());
    return 2;
  }
  if (wants_help) {
    fputs(help, stdout);
    return 0;
  }
  const absl::StatusOr<std::string> answer = act();
  if (!answer.ok()) {
    complain(answer.status());
    return 1;
  }
  fputs(answer->c_str(), stdout);
  return 0;
}

absl::Status CheckPodName(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, '/');
  if (parts.size() == 2 && !parts[0].empty() && !parts[1].empty()) return absl::OkStatus();
  return Usage(absl::StrCat("\"", word, "\" is not NAMESPACE/NAME"));
}

}  // namespace outboard::http
