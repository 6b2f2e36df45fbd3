// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/hosts/testing/fuzz_host_info.h"

namespace outboard::hosts {
namespace {

TEST(HostInfoCorpus, Seeds) { fuzz::RunCorpus("shim/hosts/testdata/host_info", 2, FuzzHostInfo); }

}  // namespace
}  // namespace outboard::hosts
