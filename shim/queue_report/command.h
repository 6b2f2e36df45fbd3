// `outboard queue`: asks a running shim which pods wait, where, and why.
#ifndef OUTBOARD_SHIM_QUEUE_REPORT_COMMAND_H_
#define OUTBOARD_SHIM_QUEUE_REPORT_COMMAND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/http/client.h"

namespace outboard::queue_report {

struct CommandLine {
  std::string pod;  // namespace/name; empty: all pods
  http::ShimAddress shim;
  size_t limit = 100;
  bool json = false;
  bool help = false;
};

extern const char kQueueHelp[];

// Errors: INVALID_ARGUMENT naming what is wrong.
absl::StatusOr<CommandLine> ParseQueue(std::vector<std::string> arguments);

// The shim's answer as a table, times as ages at the moment of the answer. Errors: INTERNAL for an
// answer of another form.
absl::StatusOr<std::string> ToTable(const std::string& json);

// The exit code: 0 shown; 1 the shim cannot be reached, or the pod is not in its queue; 2 wrong
// usage.
int RunQueue(const std::vector<std::string>& arguments);

}  // namespace outboard::queue_report

#endif  // OUTBOARD_SHIM_QUEUE_REPORT_COMMAND_H_
