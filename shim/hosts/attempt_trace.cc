#include "shim/hosts/attempt_trace.h"

namespace outboard::hosts {

std::optional<trace_context::TraceParent> AttemptTrace::Make(uint64_t attempt_id,
                                                             const std::string& pod_uid) {
  if (attempt_id == 0 || pod_uid.empty()) return std::nullopt;
  return trace_context::TraceParent(pod_uid, attempt_id);
}

std::optional<trace_context::TraceParent> AttemptTrace::OfAttempt(uint64_t attempt_id) const {
  if (attempt_id != attempt_id_) return std::nullopt;
  return Make(attempt_id, pod_uid_);
}

}  // namespace outboard::hosts
