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

// A pod's trace id: the uid without dashes, 32 hexadecimal digits.
//
// Threading: a value.
// Lifetime:  `text` as the object.
// Errors:    `text` is empty if the uid is not a UUID, or the nil UUID. Uids of Kubernetes are
// UUIDs.
class TraceId {
 public:
  static constexpr size_t kSize = 32;
  explicit TraceId(absl::string_view pod_uid);
  absl::string_view text() const { return absl::string_view(digits_.data(), size_); }

 private:
  std::array<char, kSize> digits_;
  size_t size_;
};

// W3C's `traceparent` of the calls of an attempt: "00-TRACEID-SPANID-01". The span id is the
// attempt's id as 16 hexadecimal digits. Does not allocate memory.
//
// Threading: a value.
// Lifetime:  `text` as the object.
// Errors:    `text` is empty without a trace id, and if `attempt_id` is 0: no span has that id.
class TraceParent {
 public:
  static constexpr size_t kSize = 55;
  TraceParent(absl::string_view pod_uid, uint64_t attempt_id);
  absl::string_view text() const { return absl::string_view(text_.data(), size_); }

 private:
  std::array<char, kSize> text_;
  size_t size_ = 0;
};

inline std::ostream& operator<<(std::ostream& out, const TraceId& id) { return out << id.text(); }
inline std::ostream& operator<<(std::ostream& out, const TraceParent& parent) {
  return out << parent.text();
}

}  // namespace outboard::trace_context

#endif  // OUTBOARD_PROTO_TRACE_CONTEXT_TRACE_CONTEXT_H_
