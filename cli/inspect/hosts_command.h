// `outboard hosts`, `outboard swap` and `outboard rollback`.
#ifndef OUTBOARD_CLI_INSPECT_HOSTS_COMMAND_H_
#define OUTBOARD_CLI_INSPECT_HOSTS_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::inspect {

struct HostsLine {
  http::ShimAddress shim;
  std::vector<std::string> words;  // the host, and the instance
  bool json = false;
  bool clear_quarantine = false;
  bool help = false;
};

extern const char kHostsHelp[], kSwapHelp[], kRollbackHelp[];

config::FlagTable HostsFlags(HostsLine* line);
config::FlagTable SwapFlags(HostsLine* line);
config::FlagTable RollbackFlags(HostsLine* line);

// Run one command. Return the exit code. Arguments: without the command's name.
int RunHosts(const std::vector<std::string>& arguments);
int RunSwap(const std::vector<std::string>& arguments);
int RunRollback(const std::vector<std::string>& arguments);

// The shim's JSON as a table. Pure. Errors: INTERNAL for JSON of another form.
absl::StatusOr<std::string> HostsTable(const std::string& json);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_HOSTS_COMMAND_H_
