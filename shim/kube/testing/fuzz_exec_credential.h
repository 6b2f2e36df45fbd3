// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_FUZZ_EXEC_CREDENTIAL_H_
#define OUTBOARD_SHIM_KUBE_TESTING_FUZZ_EXEC_CREDENTIAL_H_

#include "absl/strings/string_view.h"

namespace outboard::kube {

// What an exec credential plugin prints. Aborts unless accepted output has a complete credential.
void FuzzExecCredential(absl::string_view bytes);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_TESTING_FUZZ_EXEC_CREDENTIAL_H_
