// The command line of programs that ask a running shim.
#ifndef OUTBOARD_SHIM_HTTP_COMMAND_LINE_H_
#define OUTBOARD_SHIM_HTTP_COMMAND_LINE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/http/client.h"

namespace outboard::http {

// What a command takes besides what says which shim (TakeShimFlags), -h and --help.
struct CommandShape {
  // With their dashes; each has a value, after = or as the next argument.
  std::vector<std::string> flags = {};
  std::vector<std::string> switches = {};  // have none
  bool takes_output = true;                // -o, --output: table or json
};

struct CommandLine {
  ShimAddress shim;
  bool help = false;  // the rest is not known then
  bool json = false;
  std::vector<std::string> words;            // what is no flag
  std::map<std::string, std::string> flags;  // those that were given; switches without a value
};

// Errors: INVALID_ARGUMENT naming what is wrong.
absl::StatusOr<CommandLine> ParseCommandLine(const CommandShape& shape,
                                             std::vector<std::string> arguments);

// Of `outboard NAME`: prints `help` if that is asked for, else what `act` answers; what was wrong
// goes to stderr. The exit code: 0 done; 1 `act` could not; 2 wrong usage.
int RunParsed(const std::string& name, const char* help, const absl::Status& parsed,
              bool wants_help, const std::function<absl::StatusOr<std::string>()>& act);

// The same for a command line of the command's own, which has `help`, and with which `act` is
// called.
template <typename Line, typename Act>
int RunCommand(const std::string& name, const char* help, const absl::StatusOr<Line>& line,
               Act act) {
  return RunParsed(name, help, line.status(), line.ok() && line->help,
                   [&]() -> absl::StatusOr<std::string> { return act(*line); });
}

// INVALID_ARGUMENT unless the word is NAMESPACE/NAME.
absl::Status CheckPodName(const std::string& word);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_COMMAND_LINE_H_
