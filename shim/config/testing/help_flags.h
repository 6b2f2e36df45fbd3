// Reads the flags out of a help text, for tests that compare them with the table of flags.
#ifndef OUTBOARD_SHIM_CONFIG_TESTING_HELP_FLAGS_H_
#define OUTBOARD_SHIM_CONFIG_TESTING_HELP_FLAGS_H_

#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace outboard::config {

// The flags of lines that begin with a flag; of such a line only what precedes two spaces.
inline std::set<std::string> HelpFlags(absl::string_view help) {
  std::set<std::string> flags;
  for (absl::string_view line : absl::StrSplit(help, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::StartsWith(line, "-")) continue;
    line = line.substr(0, line.find("  "));
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" ,"))) {
      if (absl::StartsWith(word, "-")) flags.emplace(word);
    }
  }
  return flags;
}

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_TESTING_HELP_FLAGS_H_
