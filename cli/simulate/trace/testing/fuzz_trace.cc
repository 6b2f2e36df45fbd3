#include "cli/simulate/trace/testing/fuzz_trace.h"

#include <string>

#include "absl/strings/match.h"
#include "cli/simulate/trace/trace.h"
#include "integration/fuzz/seeds.h"

namespace outboard::simulate::trace {

void FuzzTrace(absl::string_view bytes) {
  if (bytes.size() > 1 << 16) return;
  const absl::StatusOr<Trace> trace = ParseTrace("f", std::string(bytes));
  if (!trace.ok()) {
    fuzz::Require(absl::StrContains(trace.status().message(), "f"), "an error names its file");
    return;
  }
  for (const Job& job : trace->jobs) {
    fuzz::Require(job.pod != nullptr && job.replicas > 0, "a job has replicas");
    fuzz::Require(job.arrival >= absl::ZeroDuration(), "a job arrives in the trace");
    fuzz::Require(!job.run.has_value() || *job.run >= absl::ZeroDuration(), "a run takes time");
  }
}

}  // namespace outboard::simulate::trace
