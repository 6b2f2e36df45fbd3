// Which trace context a call of a host has.
#ifndef OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_
#define OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "outboard/v1beta1/call.pb.h"
#include "proto/trace_context/trace_context.h"

namespace outboard::hosts {

// Requests from Filter to Score name only the attempt, whose pod an earlier request named: this
// remembers the pod of the last attempt. Only one attempt at a time is between PreFilter and Score.
//
// Threading: the owner's.
// Lifetime:  any.
// Errors:    none; a call whose pod is unknown has no trace context.
class AttemptTrace {
 public:
  // An attempt begins. Reuses its memory.
  void Begin(const v1beta1::CallHeader& header, const std::string& pod_uid) {
    attempt_id_ = header.attempt_id();
    pod_uid_ = pod_uid;
  }

  // Absent for a call that is not about one pod's attempt.
  template <typename Request>
  std::optional<trace_context::TraceParent> Of(const Request& request) const {
    if constexpr (requires { request.pod_uids(); }) {
      return std::nullopt;
    } else if constexpr (requires { request.pod_uid(); }) {
      return Make(request.header().attempt_id(), request.pod_uid());
    } else {
      const uint64_t attempt_id = request.header().attempt_id();
      if constexpr (requires { request.pod(); }) {
        // To a host without a cluster cache.
        if (request.has_pod()) return Make(attempt_id, request.pod().uid());
      }
      return OfAttempt(attempt_id);
    }
  }

 private:
  static std::optional<trace_context::TraceParent> Make(uint64_t attempt_id,
                                                        const std::string& pod_uid);
  std::optional<trace_context::TraceParent> OfAttempt(uint64_t attempt_id) const;

  uint64_t attempt_id_ = 0;
  std::string pod_uid_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_
