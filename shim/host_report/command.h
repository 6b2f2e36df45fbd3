// `outboard hosts`, `outboard swap` and `outboard rollback`.
#ifndef OUTBOARD_SHIM_HOST_REPORT_COMMAND_H_
#define OUTBOARD_SHIM_HOST_REPORT_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace outboard::host_report {

// Run one command; the exit code. Arguments: without the command's name.
int RunHosts(const std::vector<std::string>& arguments);
int RunSwap(const std::vector<std::string>& arguments);
int RunRollback(const std::vector<std::string>& arguments);

// The shim's JSON as a table. Errors: INTERNAL if it is not what it should be. Pure.
absl::StatusOr<std::string> ToTable(const std::string& json);

}  // namespace outboard::host_report

#endif  // OUTBOARD_SHIM_HOST_REPORT_COMMAND_H_
