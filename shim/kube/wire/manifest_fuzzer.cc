#include <cstddef>
#include <cstdint>

#include "shim/kube/wire/testing/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outboard::kube::FuzzManifest({reinterpret_cast<const char*>(data), size});
  return 0;
}
