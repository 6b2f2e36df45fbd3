#include <cstddef>
#include <cstdint>

#include "cli/manifests/testing/fuzz_manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outboard::manifests::FuzzManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
