// Runs the fuzz target of configuration files over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/config/testing/fuzz_config.h"

namespace outboard::config {
namespace {

TEST(ConfigCorpus, Seeds) {
  fuzz::RunCorpus("shim/config/testdata/fuzz", 3, FuzzConfig, /*cuts=*/50);
}

}  // namespace
}  // namespace outboard::config
