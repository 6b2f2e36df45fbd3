// The differences of two texts, as `diff -u` prints them.
#ifndef OUTBOARD_CLI_CONFIG_LINE_DIFF_H_
#define OUTBOARD_CLI_CONFIG_LINE_DIFF_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::config_command {

// A unified diff with three lines of context, "" if the texts are equal. Where very large parts
// differ they are shown as one change. Pure.
std::string UnifiedDiff(absl::string_view old_name, absl::string_view old_text,
                        absl::string_view new_name, absl::string_view new_text);

}  // namespace outboard::config_command

#endif  // OUTBOARD_CLI_CONFIG_LINE_DIFF_H_
