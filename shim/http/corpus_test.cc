// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/http/testing/fuzz_http_request.h"

namespace outboard::http {
namespace {

TEST(HttpCorpus, Seeds) { fuzz::RunCorpus("shim/http/testdata/request", 4, FuzzHttpRequest); }

}  // namespace
}  // namespace outboard::http
