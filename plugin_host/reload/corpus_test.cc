// Runs the fuzz target over its seeds.
#include "gtest/gtest.h"
#include "integration/fuzz/run_corpus.h"
#include "plugin_host/reload/testing/fuzz_manifest.h"

namespace outboard::reload {
namespace {

TEST(PluginManifestCorpus, Seeds) {
  fuzz::RunCorpus("plugin_host/reload/testdata/manifest", 2, FuzzManifest);
}

}  // namespace
}  // namespace outboard::reload
