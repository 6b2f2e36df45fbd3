// The table that `outboard simulate` prints for people.
#ifndef OUTBOARD_SHIM_SIMULATE_TABLE_H_
#define OUTBOARD_SHIM_SIMULATE_TABLE_H_

#include <string>
#include <vector>

#include "shim/simulate/report.h"

namespace outboard::simulate {

// One row a pod: where it went and why, or why it went nowhere; then a summary. Ends with a line
// end.
std::string ToTable(const std::vector<PodReport>& reports);

}  // namespace outboard::simulate

#endif  // OUTBOARD_SHIM_SIMULATE_TABLE_H_
