// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_TESTING_FUZZ_TRACE_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_TESTING_FUZZ_TRACE_H_

#include "absl/strings/string_view.h"

namespace outboard::simulate::trace {

// A trace. Aborts unless an error names its file, and every job of a trace can be scheduled.
void FuzzTrace(absl::string_view bytes);

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_TESTING_FUZZ_TRACE_H_
