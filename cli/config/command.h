// `outboard config`: checks a configuration file, with the plugins of hosts, or compares it with
// the running configuration.
#ifndef OUTBOARD_CLI_CONFIG_COMMAND_H_
#define OUTBOARD_CLI_CONFIG_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/config/asked_hosts.h"
#include "shim/config/config.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::config_command {

struct ConfigLine {
  std::string file;
  bool diff = false;               // compare with the shim's configuration
  http::ShimAddress shim;          // with `diff`
  std::vector<std::string> hosts;  // addresses; empty: start one
  bool without_hosts = false;
  bool help = false;
};

extern const char kConfigHelp[];

config::FlagTable ConfigFlags(ConfigLine* line);

// Errors: INVALID_ARGUMENT naming the wrong argument.
absl::StatusOr<ConfigLine> ParseConfigLine(const std::vector<std::string>& arguments);

// Checks the plugins of all profiles, and their arguments, as a shim with these hosts would.
// Appends to `warnings`. Finds as many problems as possible in one run; also for a configuration
// with problems of its own.
// Errors: INVALID_ARGUMENT with one problem per line; UNAVAILABLE if a host does not answer.
absl::Status CheckPlugins(const config::Config& config, const AskedHosts& hosts,
                          std::vector<std::string>* warnings);

// The lines of both texts without duplicates, in the order of their positions in `file`. Pure.
std::string MergeProblems(const std::string& file, absl::string_view first,
                          absl::string_view second);

// What would change if the file replaced the running configuration, a page of /configz; "" if
// nothing would. Pure.
// Errors: INVALID_ARGUMENT with the file's problems; INTERNAL for a page that this version does not
// understand.
absl::StatusOr<std::string> ConfigDiff(const std::string& page, const config::Config& file);

// Returns the exit code: 0 valid; 1 a host does not answer; 2 not valid, or invalid usage. With
// diff: 0 equal; 1 different; 2 the shim does not answer, the file is not valid, or invalid usage.
int RunConfig(const std::vector<std::string>& arguments);

}  // namespace outboard::config_command

#endif  // OUTBOARD_CLI_CONFIG_COMMAND_H_
