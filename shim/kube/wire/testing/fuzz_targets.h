// What the fuzzers do with an input; the corpus test does the same with the seeds in testdata/.
//
// Each ends the process when a promise is broken. An input that begins with "hex:" stands for the
// bytes that it spells.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::kube {

// The bytes that `input` stands for.
std::string SeedBytes(absl::string_view input);

void FuzzQuantity(absl::string_view input);
void FuzzWatchFrame(absl::string_view input);
void FuzzManifest(absl::string_view input);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
