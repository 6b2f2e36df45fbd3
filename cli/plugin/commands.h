// `outboard new` and `outboard plugin`.
#ifndef OUTBOARD_CLI_PLUGIN_COMMANDS_H_
#define OUTBOARD_CLI_PLUGIN_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::plugin_command {

struct NewLine {
  std::string language, dir;
};

struct PluginLine {
  bool install = true;  // else remove
  std::string file, into;
  http::ShimAddress shim;  // without a server: does not wait
  absl::Duration timeout = absl::Minutes(1), watch;
  bool help = false;
};

extern const char kNewHelp[], kPluginHelp[];

config::FlagTable NewFlags(NewLine* line);
config::FlagTable PluginFlags(PluginLine* line);

// Run one command. Return the exit code. Arguments: without the command's name.
int RunNew(const std::vector<std::string>& arguments);
int RunPlugin(const std::vector<std::string>& arguments);

// The name of a plugin in other spellings.
struct Names {
  std::string camel;   // PriceScore
  std::string snake;   // price_score
  std::string dashes;  // price-score
};
// Pure. Errors: INVALID_ARGUMENT unless the name is an upper-case letter and then letters and
// digits, 2 to 50 characters, as Kubernetes names its own plugins.
absl::Status CheckPluginName(absl::string_view name);
// INVALID_ARGUMENT if the name is in `served` or is one of kube-scheduler's plugins. Pure.
absl::Status CheckNotServed(const std::string& name, const std::vector<std::string>& served);
// What `outboard new` prints about the folder that it wrote. `package`: the package's folder, if
// known. Pure.
std::string NextSteps(const NewLine& line, const std::string& name, const std::string& package);
// GPUAware becomes gpu_aware. Pure.
Names NamesOf(absl::string_view name);
// A template's text with the example's names replaced. Pure.
std::string FillTemplate(absl::string_view text, const Names& names);

// Copies the folder of a template and fills in the names.
// Errors: ALREADY_EXISTS if `into` exists; NOT_FOUND without the template; UNAVAILABLE with the
// system's error. Files that are already written stay.
absl::Status CopyTemplate(const std::string& from, const Names& names, const std::string& into);

}  // namespace outboard::plugin_command

#endif  // OUTBOARD_CLI_PLUGIN_COMMANDS_H_
