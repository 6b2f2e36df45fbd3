// The fuzz target of whole watches, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_FUZZ_WATCH_STREAM_H_
#define OUTBOARD_SHIM_KUBE_TESTING_FUZZ_WATCH_STREAM_H_

#include "absl/strings/string_view.h"

namespace outboard::kube {

// The first byte chooses framing and sizes of pieces, the rest is the stream. Aborts unless the
// frames are the same however the stream is cut into pieces.
void FuzzWatchStream(absl::string_view bytes);

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_TESTING_FUZZ_WATCH_STREAM_H_
