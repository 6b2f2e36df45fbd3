#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "shim/kube/wire/testing/fuzz_targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outboard::kube::FuzzWatchFrame({reinterpret_cast<const char*>(data), size});
  return 0;
}

// Seeds are hexadecimal; mutations apply to the decoded bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int /*seed*/) {
  const std::string bytes = outboard::kube::SeedBytes({reinterpret_cast<const char*>(data), size});
  const size_t length = std::min(bytes.size(), max_size);
  std::copy_n(bytes.data(), length, data);
  return LLVMFuzzerMutate(data, length, max_size);
}
