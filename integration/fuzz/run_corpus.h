// Runs a fuzz target over its seeds, as a test.
#ifndef OUTBOARD_INTEGRATION_FUZZ_RUN_CORPUS_H_
#define OUTBOARD_INTEGRATION_FUZZ_RUN_CORPUS_H_

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "integration/fuzz/seeds.h"

namespace outboard::fuzz {

inline std::string ReadSeed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Expects at least `at_least` seeds in `folder`. Each also runs cut off at up to `cuts` places:
// cheap, and finds wrong checks of lengths.
inline void RunCorpus(const std::filesystem::path& folder, size_t at_least,
                      const std::function<void(absl::string_view)>& target, size_t cuts = 200) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    const std::string bytes = SeedBytes(ReadSeed(entry.path()));
    target(bytes);
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / cuts)
      target(absl::string_view(bytes).substr(0, length));
    ++count;
  }
  EXPECT_GE(count, at_least);
}

}  // namespace outboard::fuzz

#endif  // OUTBOARD_INTEGRATION_FUZZ_RUN_CORPUS_H_
