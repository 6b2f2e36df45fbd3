// Runs a fuzzer's body over its seeds, as a test.
#ifndef OUTBOARD_SHIM_KUBE_WIRE_TESTING_RUN_CORPUS_H_
#define OUTBOARD_SHIM_KUBE_WIRE_TESTING_RUN_CORPUS_H_

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/testing/fuzz_targets.h"

namespace outboard::kube {

inline std::string ReadSeed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Expects at least `at_least` seeds in `folder`.
inline void RunCorpus(const std::filesystem::path& folder, size_t at_least,
                      const std::function<void(absl::string_view)>& target) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    const std::string seed = ReadSeed(entry.path());
    target(seed);
    // Also truncated at every length: cheap, and finds wrong length checks.
    const std::string bytes = SeedBytes(seed);
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 200) {
      target(absl::string_view(bytes).substr(0, length));
    }
    ++count;
  }
  EXPECT_GE(count, at_least);
}

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_WIRE_TESTING_RUN_CORPUS_H_
