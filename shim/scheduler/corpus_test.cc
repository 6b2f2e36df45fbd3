// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/scheduler/testing/fuzz_hostile_host.h"

namespace outboard::scheduler {
namespace {

TEST(HostileHostCorpus, Seeds) {
  fuzz::RunCorpus("shim/scheduler/testdata/hostile_host", 3, FuzzHostileHost);
}

}  // namespace
}  // namespace outboard::scheduler
