#include "plugin_host/runtime/cut_text.h"

#include <algorithm>

namespace outboard::runtime {
namespace {

// The length of the character at the beginning of `text`, which is not empty; 0: not UTF-8.
size_t CharacterLength(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than necessary, a surrogate, or beyond U+10FFFF.
  if ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
      (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return length;
}

}  // namespace

std::string TextForPeople(absl::string_view text, size_t max_bytes) {
  std::string result(CutText(text, max_bytes));
  if (std::all_of(result.begin(), result.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return result;
  for (size_t i = 0; i < result.size();) {
    const size_t length = CharacterLength(absl::string_view(result).substr(i));
    if (length == 0) result[i] = '?';
    i += std::max<size_t>(length, 1);
  }
  return result;
}

}  // namespace outboard::runtime
