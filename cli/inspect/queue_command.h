// `outboard queue`: asks a running shim which pods wait, where in the queue, and why.
#ifndef OUTBOARD_CLI_INSPECT_QUEUE_COMMAND_H_
#define OUTBOARD_CLI_INSPECT_QUEUE_COMMAND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "shim/config/flag_table.h"
#include "shim/http/client.h"

namespace outboard::inspect {

struct QueueLine {
  std::string pod;  // namespace/name; empty: all pods
  http::ShimAddress shim;
  size_t limit = 100;
  bool json = false;
  bool help = false;
};

extern const char kQueueHelp[];

config::FlagTable QueueFlags(QueueLine* line);

// Errors: INVALID_ARGUMENT naming the wrong argument.
absl::StatusOr<QueueLine> ParseQueue(const std::vector<std::string>& arguments);

// The shim's answer as a table, with times as ages at the time of the answer. Pure.
// Errors: INTERNAL for an answer of another form.
absl::StatusOr<std::string> QueueTable(const std::string& json);

// Returns the exit code: 0 shown; 1 the shim cannot be reached, or the pod is not in its queue;
// 2 invalid usage.
int RunQueue(const std::vector<std::string>& arguments);

}  // namespace outboard::inspect

#endif  // OUTBOARD_CLI_INSPECT_QUEUE_COMMAND_H_
