// Runs the fuzz target of manifests over its seeds.
#include "cli/manifests/testing/fuzz_manifest.h"
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"

namespace outboard::manifests {
namespace {

TEST(Corpus, Manifest) { fuzz::RunCorpus("cli/manifests/testdata/manifest", 4, FuzzManifest); }

}  // namespace
}  // namespace outboard::manifests
