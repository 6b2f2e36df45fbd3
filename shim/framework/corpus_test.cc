// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/framework/testing/fuzz_answer.h"

namespace outboard::framework {
namespace {

TEST(AnswerCorpus, Seeds) { fuzz::RunCorpus("shim/framework/testdata/answer", 26, FuzzAnswer); }

}  // namespace
}  // namespace outboard::framework
