// The fuzz target of configuration files, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_SHIM_CONFIG_TESTING_FUZZ_CONFIG_H_
#define OUTBOARD_SHIM_CONFIG_TESTING_FUZZ_CONFIG_H_

#include "absl/strings/string_view.h"

namespace outboard::config {

// Aborts unless any bytes are an error, or a configuration that can be written and read again.
void FuzzConfig(absl::string_view text);

}  // namespace outboard::config

#endif  // OUTBOARD_SHIM_CONFIG_TESTING_FUZZ_CONFIG_H_
