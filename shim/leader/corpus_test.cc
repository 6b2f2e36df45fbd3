// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/leader/testing/fuzz_lease.h"

namespace outboard::leader {
namespace {

TEST(LeaseCorpus, Seeds) { fuzz::RunCorpus("shim/leader/testdata/lease", 2, FuzzLease); }

}  // namespace
}  // namespace outboard::leader
