// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_HTTP_TESTING_FUZZ_HTTP_REQUEST_H_
#define OUTBOARD_SHIM_HTTP_TESTING_FUZZ_HTTP_REQUEST_H_

#include "absl/strings/string_view.h"

namespace outboard::http {

// What a client sends on one connection. Aborts unless the answer is HTTP, and only a POST with the
// header of commands changes anything.
void FuzzHttpRequest(absl::string_view bytes);

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_TESTING_FUZZ_HTTP_REQUEST_H_
