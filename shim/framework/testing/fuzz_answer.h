// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_FRAMEWORK_TESTING_FUZZ_ANSWER_H_
#define OUTBOARD_SHIM_FRAMEWORK_TESTING_FUZZ_ANSWER_H_

#include "absl/strings/string_view.h"

namespace outboard::framework {

// The first byte chooses a point, the rest is a host's answer to it. Aborts unless an answer that
// passes its check has what the rest of the shim relies on.
void FuzzAnswer(absl::string_view bytes);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_TESTING_FUZZ_ANSWER_H_
