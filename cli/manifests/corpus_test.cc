// Runs the manifest fuzzer on its seeds.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli/manifests/testing/fuzz_manifest.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/testing/fuzz_targets.h"

namespace outboard::manifests {

using kube::SeedBytes;

namespace {

TEST(Corpus, Manifest) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator("cli/manifests/testdata/manifest")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    FuzzManifest(text.str());
    // Also truncated at every byte: cheap, and finds wrong length checks.
    const std::string bytes = SeedBytes(text.str());
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 200) {
      FuzzManifest(absl::string_view(bytes).substr(0, length));
    }
    ++seeds;
  }
  EXPECT_GE(seeds, 4);
}

}  // namespace
}  // namespace outboard::manifests
