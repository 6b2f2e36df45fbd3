#include "proto/trace_context/trace_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace outboard::trace_context {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr size_t kUuidSize = 36;

bool IsDash(size_t position) {
  return position == 8 || position == 13 || position == 18 || position == 23;
}

// Copies the digits of a UUID, in lower case. False if `uid` is not one, or is the nil UUID, which
// W3C does not accept as a trace id.
bool CopyUuid(absl::string_view uid, char* out) {
  if (uid.size() != kUuidSize) return false;
  bool is_nil = true;
  for (size_t i = 0; i < kUuidSize; ++i) {
    const unsigned char c = static_cast<unsigned char>(uid[i]);
    if (IsDash(i)) {
      if (c != '-') return false;
      continue;
    }
    if (!absl::ascii_isxdigit(c)) return false;
    is_nil = is_nil && c == '0';
    *out++ = absl::ascii_tolower(c);
  }
  return !is_nil;
}

}  // namespace

TraceId::TraceId(absl::string_view pod_uid)
    : size_(CopyUuid(pod_uid, digits_.data()) ? kSize : 0) {}

TraceParent::TraceParent(absl::string_view pod_uid, uint64_t attempt_id) {
  const TraceId trace_id(pod_uid);
  if (trace_id.text().empty() || attempt_id == 0) return;
  char* out = text_.data();
  const auto append = [&out](absl::string_view part) {
    out = std::copy(part.begin(), part.end(), out);
  };
  append("00-");
  append(trace_id.text());
  append("-");
  for (int shift = 60; shift >= 0; shift -= 4) *out++ = kHexDigits[(attempt_id >> shift) & 15];
  append("-01");
  size_ = kSize;
}

}  // namespace outboard::trace_context
