// Texts of a limited length.
#ifndef OUTBOARD_SHIM_CUT_TEXT_H_
#define OUTBOARD_SHIM_CUT_TEXT_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace outboard {

// The longest start of the text with at most `max_bytes` that ends between characters: half a
// character of UTF-8 makes a message of the contract unreadable, and grows when it becomes JSON.
// Pure.
inline absl::string_view CutAtCharacter(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace outboard

#endif  // OUTBOARD_SHIM_CUT_TEXT_H_
