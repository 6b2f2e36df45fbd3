// A fuzz target, which also runs over the seeds in testdata/ as a test.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_TESTING_FUZZ_PRICE_LIST_H_
#define OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_TESTING_FUZZ_PRICE_LIST_H_

#include "absl/strings/string_view.h"

namespace outboard::sdk {

// A price list. Aborts unless an error names file and line, and every price is finite, not
// negative, and found.
void FuzzPriceList(absl::string_view bytes);

}  // namespace outboard::sdk

#endif  // OUTBOARD_PLUGIN_HOST_SDK_NODE_FACTS_TESTING_FUZZ_PRICE_LIST_H_
