// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_PLUGIN_HOST_RELOAD_TESTING_FUZZ_MANIFEST_H_
#define OUTBOARD_PLUGIN_HOST_RELOAD_TESTING_FUZZ_MANIFEST_H_

#include "absl/strings/string_view.h"

namespace outboard::reload {

// A plugin directory's manifest. Aborts unless names stay in the directory, and the text of a
// manifest is one.
void FuzzManifest(absl::string_view bytes);

}  // namespace outboard::reload

#endif  // OUTBOARD_PLUGIN_HOST_RELOAD_TESTING_FUZZ_MANIFEST_H_
