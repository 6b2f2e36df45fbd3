// What fuzz targets share: seeds and promises.
//
// A fuzz target is a function of bytes that aborts if a promise is broken. CMakeLists.txt declares
// it twice: as a libFuzzer program (outboard_fuzzer) and, over its seeds, as a test of the unit
// tier (run_corpus.h). An input that once broke a promise becomes a seed.
#ifndef OUTBOARD_INTEGRATION_FUZZ_SEEDS_H_
#define OUTBOARD_INTEGRATION_FUZZ_SEEDS_H_

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"

namespace outboard::fuzz {

// Errors: a violation aborts the process, which a fuzzer reports.
inline void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// A seed's bytes: `input`, or what its hexadecimal digits encode if it starts with "hex:".
inline std::string SeedBytes(absl::string_view input) {
  constexpr absl::string_view kHex("hex:", 4);
  if (input.substr(0, kHex.size()) != kHex) return std::string(input);
  std::string bytes;
  int high = -1;
  for (const char c : input.substr(kHex.size())) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes.push_back(static_cast<char>(high << 4 | digit));
      high = -1;
    }
  }
  return bytes;
}

}  // namespace outboard::fuzz

#endif  // OUTBOARD_INTEGRATION_FUZZ_SEEDS_H_
