// Runs the manifest fuzzer on its seeds.
#include "cli/manifests/testing/fuzz_manifest.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/testing/run_corpus.h"

namespace outboard::manifests {
namespace {

TEST(Corpus, Manifest) { kube::RunCorpus("cli/manifests/testdata/manifest", 4, FuzzManifest); }

}  // namespace
}  // namespace outboard::manifests
