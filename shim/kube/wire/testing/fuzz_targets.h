// The fuzz targets. The corpus test runs them over the seeds in testdata/.
//
// Each aborts the process if an invariant is violated. An input that starts with "hex:" is decoded
// from hexadecimal.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace outboard::kube {

// The decoded bytes of `input`.
std::string SeedBytes(absl::string_view input);

void FuzzQuantity(absl::string_view input);
void FuzzWatchFrame(absl::string_view input);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
