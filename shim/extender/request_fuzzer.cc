#include <cstddef>
#include <cstdint>

#include "shim/extender/testing/fuzz_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  outboard::extender::FuzzRequest({reinterpret_cast<const char*>(data), size});
  return 0;
}
