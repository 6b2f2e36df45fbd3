// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_HOSTS_TESTING_FUZZ_HOST_INFO_H_
#define OUTBOARD_SHIM_HOSTS_TESTING_FUZZ_HOST_INFO_H_

#include "absl/strings/string_view.h"

namespace outboard::hosts {

// What a host says about itself. Aborts unless accepted information is bounded and gives plans or
// an error.
void FuzzHostInfo(absl::string_view bytes);

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_TESTING_FUZZ_HOST_INFO_H_
