// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "plugin_host/sdk/node_facts/testing/fuzz_price_list.h"

namespace outboard::sdk {
namespace {

TEST(PriceListCorpus, Seeds) {
  fuzz::RunCorpus("plugin_host/sdk/node_facts/testdata/prices", 3, FuzzPriceList);
}

}  // namespace
}  // namespace outboard::sdk
