// The trace context of an attempt, by the rule of call.proto (CallHeader): shim and hosts compute
// the same one without telling each other.
#ifndef OUTBOARD_PROTO_TRACE_CONTEXT_TRACE_CONTEXT_H_
#define OUTBOARD_PROTO_TRACE_CONTEXT_TRACE_CONTEXT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>

#include "absl/strings/string_view.h"

namespace outboard::trace_context {

// The key in the metadata of a call.
inline constexpr char kTraceParentKey[] = "traceparent";

// A pod's trace id: 32 hexadecimal digits, never all 0. The uid without dashes if it is a UUID,
// otherwise the first 16 bytes of its SHA-256.
//
// Threading: a value.
// Lifetime:  `text` as the object.
// Errors:    none; every uid has one.
class TraceId {
 public:
  static constexpr size_t kSize = 32;
  explicit TraceId(absl::string_view pod_uid);
  absl::string_view text() const { return absl::string_view(digits_.data(), digits_.size()); }

 private:
  std::array<char, kSize> digits_;
};

// W3C's `traceparent` of the calls of an attempt: "00-TRACEID-SPANID-01". The span id is the
// attempt's id as 16 hexadecimal digits. Does not allocate memory.
//
// Threading: a value.
// Lifetime:  `text` as the object.
// Errors:    none; `attempt_id` must not be 0, because no span has that id.
class TraceParent {
 public:
  static constexpr size_t kSize = 55;
  TraceParent(absl::string_view pod_uid, uint64_t attempt_id);
  absl::string_view text() const { return absl::string_view(text_.data(), text_.size()); }

 private:
  std::array<char, kSize> text_;
};

inline std::ostream& operator<<(std::ostream& out, const TraceId& id) { return out << id.text(); }
inline std::ostream& operator<<(std::ostream& out, const TraceParent& parent) {
  return out << parent.text();
}

}  // namespace outboard::trace_context

#endif  // OUTBOARD_PROTO_TRACE_CONTEXT_TRACE_CONTEXT_H_
