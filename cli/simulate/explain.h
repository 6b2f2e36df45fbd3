// `outboard simulate --explain`: the whole story of one pod.
#ifndef OUTBOARD_CLI_SIMULATE_EXPLAIN_H_
#define OUTBOARD_CLI_SIMULATE_EXPLAIN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/simulate/report.h"
#include "cli/simulate/simulation.h"

namespace outboard::simulate {

// The pod, as namespace/name, that `word` names: NAMESPACE/NAME, or NAME if only one namespace has
// it.
// Errors: INVALID_ARGUMENT.
absl::StatusOr<std::string> FindPod(const SimulationInput& scene, const std::string& word);

// The attempts at `pod` in `reports` as JSON of the form of a running shim's /explain, the newest
// first. Ends with a newline.
std::string ExplainJson(const std::string& pod, const std::vector<AttemptReport>& reports);

}  // namespace outboard::simulate

#endif  // OUTBOARD_CLI_SIMULATE_EXPLAIN_H_
