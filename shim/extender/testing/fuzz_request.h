// The fuzzer's body, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_
#define OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_

#include "absl/strings/string_view.h"

namespace outboard::extender {

// Aborts if a body that is no JSON is taken for a request, or an answer to it would be none.
void FuzzRequest(absl::string_view body);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_
