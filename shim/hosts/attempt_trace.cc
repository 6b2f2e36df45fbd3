#include "shim/hosts/attempt_trace.h"

namespace outboard::hosts {

trace_context::TraceParent AttemptTrace::OfAttempt(uint64_t attempt_id) const {
  const bool known = attempt_id == attempt_id_;
  return trace_context::TraceParent(known ? absl::string_view(pod_uid_) : "", attempt_id);
}

}  // namespace outboard::hosts
