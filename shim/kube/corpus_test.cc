// Runs the fuzz targets over their seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "shim/kube/testing/fuzz_exec_credential.h"
#include "shim/kube/testing/fuzz_watch_stream.h"

namespace outboard::kube {
namespace {

TEST(WatchStreamCorpus, Seeds) {
  fuzz::RunCorpus("shim/kube/testdata/watch_stream", 3, FuzzWatchStream);
}

TEST(ExecCredentialCorpus, Seeds) {
  fuzz::RunCorpus("shim/kube/testdata/exec_credential", 2, FuzzExecCredential);
}

}  // namespace
}  // namespace outboard::kube
