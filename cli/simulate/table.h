// The table that `outboard simulate` prints.
#ifndef OUTBOARD_CLI_SIMULATE_TABLE_H_
#define OUTBOARD_CLI_SIMULATE_TABLE_H_

#include <string>
#include <vector>

#include "cli/simulate/report.h"

namespace outboard::simulate {

// One row per pod: its node and why, or why it has none; then a summary. Ends with a newline.
std::string ToTable(const std::vector<PodReport>& reports);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_TABLE_H_
