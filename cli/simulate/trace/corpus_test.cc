// Runs the fuzz target over its seeds.
#include "cli/simulate/trace/testing/fuzz_trace.h"
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"

namespace outboard::simulate::trace {
namespace {

TEST(TraceCorpus, Seeds) { fuzz::RunCorpus("cli/simulate/trace/testdata/fuzz", 3, FuzzTrace); }

}  // namespace
}  // namespace outboard::simulate::trace
