// Shell completion of `outboard`, generated from the tables of commands and flags.
#ifndef OUTBOARD_CLI_COMPLETION_H_
#define OUTBOARD_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "shim/config/flag_table.h"

namespace outboard::cli {

// What the user may write after `outboard`.
struct CompletedCommand {
  std::string name, line;
  std::vector<std::string> words;  // the first argument, if it is one of these
  std::vector<config::FlagTable::Flag> flags;
};

// The shells that CompletionScript knows.
const std::vector<std::string>& CompletedShells();

// The script that completes `commands` and the flags of `outboard` itself. Values of flags without
// choices, and other words, are completed as file names. Pure. `shell` is one of CompletedShells.
std::string CompletionScript(absl::string_view shell,
                             const std::vector<CompletedCommand>& commands);

}  // namespace outboard::cli

#endif  // OUTBOARD_CLI_COMPLETION_H_
