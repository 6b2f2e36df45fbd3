// Texts within the contract's limits.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_CUT_TEXT_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_CUT_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace outboard::runtime {

// The contract's limit of a message for people.
inline constexpr size_t kMaxMessageBytes = 1024;

// Truncates at the beginning of a character. Pure.
inline absl::string_view CutText(absl::string_view text, size_t max_bytes = kMaxMessageBytes) {
  if (text.size() <= max_bytes) return text;
  size_t end = max_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end);
}

// A plugin's text as an answer may have it: truncated, and with `?` for each byte that is not
// UTF-8. The receiver cannot read a message with invalid UTF-8 at all. Pure.
std::string TextForPeople(absl::string_view text, size_t max_bytes = kMaxMessageBytes);

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_CUT_TEXT_H_
