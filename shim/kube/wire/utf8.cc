#include "shim/kube/wire/utf8.h"

#include <cstdint>
#include <cstring>

namespace outboard::kube {
namespace {

bool Continues(absl::string_view text, size_t pos) {
  return pos < text.size() && (static_cast<uint8_t>(text[pos]) & 0xC0) == 0x80;
}

// Length of the valid character at `pos`, 0 if invalid (RFC 3629: no overlong forms, no
// surrogates).
size_t CharacterAt(absl::string_view text, size_t pos) {
  const auto lead = static_cast<uint8_t>(text[pos]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !Continues(text, pos + 1)) return 0;
  if (lead < 0xE0) return 2;
  const auto second = static_cast<uint8_t>(text[pos + 1]);
  if (!Continues(text, pos + 2)) return 0;
  if (lead < 0xF0) {
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
    return 3;
  }
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return Continues(text, pos + 3) ? 4 : 0;
}

}  // namespace

size_t Utf8Prefix(absl::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    // Nearly all text is ASCII: check eight bytes at a time.
    uint64_t eight = 0;
    if (text.size() - pos >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + pos, sizeof(eight));
      if ((eight & 0x8080808080808080) == 0) {
        pos += sizeof(eight);
        continue;
      }
    }
    const size_t length = CharacterAt(text, pos);
    if (length == 0) break;
    pos += length;
  }
  return pos;
}

std::string ToUtf8(absl::string_view text) {
  std::string out;
  while (true) {
    const size_t good = Utf8Prefix(text);
    out.append(text.data(), good);
    if (good == text.size()) return out;
    out.append("\xEF\xBF\xBD");
    text.remove_prefix(good + 1);
  }
}

}  // namespace outboard::kube
