// The fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_
#define OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_

#include "absl/strings/string_view.h"

namespace outboard::extender {

// Aborts if an invalid JSON body is accepted, or if an answer is not valid JSON.
void FuzzRequest(absl::string_view body);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_TESTING_FUZZ_REQUEST_H_
