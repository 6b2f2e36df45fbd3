// `outboard new` and `outboard plugin`.
#ifndef OUTBOARD_SHIM_AUTHOR_COMMANDS_H_
#define OUTBOARD_SHIM_AUTHOR_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outboard::author {

// Run one command; the exit code. Arguments: without the command's name.
int RunNew(const std::vector<std::string>& arguments);
int RunPlugin(const std::vector<std::string>& arguments);

// The name of a plugin in other spellings.
struct Names {
  std::string camel;   // PriceScore
  std::string snake;   // price_score
  std::string dashes;  // price-score
};
// Errors: INVALID_ARGUMENT unless it is an upper-case letter and letters and digits, 2 to 50, as
// Kubernetes' own plugins are named. Pure.
absl::Status CheckPluginName(absl::string_view name);
// GPUAware becomes gpu_aware. Pure.
Names NamesOf(absl::string_view name);
// A template's text with the names in it put in place of the example's. Pure.
std::string FillTemplate(absl::string_view text, const Names& names);

// Copies the folder of a template and fills it in. Errors: ALREADY_EXISTS if `into` exists;
// NOT_FOUND without the template; UNAVAILABLE in the system's words, with what was written left
// there.
absl::Status CopyTemplate(const std::string& from, const Names& names, const std::string& into);

}  // namespace outboard::author

#endif  // OUTBOARD_SHIM_AUTHOR_COMMANDS_H_
