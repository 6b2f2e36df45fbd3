// The fuzz targets of the wire formats, which also run over the seeds in testdata/ as tests.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_

#include "absl/strings/string_view.h"

namespace outboard::kube {

// Each aborts if a promise is broken.

// A quantity's text.
void FuzzQuantity(absl::string_view input);
// One frame of a watch, in protobuf.
void FuzzWatchFrame(absl::string_view bytes);
// An object or list of any kind, in protobuf and in JSON.
void FuzzObject(absl::string_view bytes);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_TESTING_FUZZ_TARGETS_H_
