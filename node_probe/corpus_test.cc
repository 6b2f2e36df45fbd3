// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "node_probe/testing/fuzz_targets.h"

namespace outboard::node_probe {
namespace {

TEST(NvidiaSmiCorpus, Seeds) { fuzz::RunCorpus("node_probe/testdata/fuzz", 5, FuzzNvidiaSmi); }

}  // namespace
}  // namespace outboard::node_probe
