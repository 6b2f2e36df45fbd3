// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FUZZ_SAMPLES_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FUZZ_SAMPLES_H_

#include "absl/strings/string_view.h"

namespace outboard::prometheus {

// An answer of Prometheus to an instant query. Aborts unless samples are bounded and numbers are
// finite.
void FuzzSamples(absl::string_view bytes);

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_TESTING_FUZZ_SAMPLES_H_
