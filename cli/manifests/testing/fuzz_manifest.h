// The manifest fuzzer's test of one input; corpus_test.cc runs it on the seeds in testdata/.
//
// Errors: a broken promise ends the process. An input that begins with "hex:" is decoded to bytes.
#ifndef OUTBOARD_CLI_MANIFESTS_TESTING_FUZZ_MANIFEST_H_
#define OUTBOARD_CLI_MANIFESTS_TESTING_FUZZ_MANIFEST_H_

#include "absl/strings/string_view.h"

namespace outboard::manifests {

void FuzzManifest(absl::string_view input);

}  // namespace outboard::manifests

#endif  // OUTBOARD_CLI_MANIFESTS_TESTING_FUZZ_MANIFEST_H_
