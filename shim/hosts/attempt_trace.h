// Which trace context a call of a host has.
#ifndef OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_
#define OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_

#include <cstdint>
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

  // Empty for a call that is not about one pod's attempt.
  template <typename Request>
  trace_context::TraceParent Of(const Request& request) const {
    if constexpr (requires { request.pod_uids(); }) {
      return trace_context::TraceParent("", 0);
    } else if constexpr (requires { request.pod_uid(); }) {
      return trace_context::TraceParent(request.pod_uid(), request.header().attempt_id());
    } else {
      const uint64_t attempt_id = request.header().attempt_id();
      if constexpr (requires { request.pod(); }) {
        // To a host without a cluster cache.
        if (request.has_pod()) return trace_context::TraceParent(request.pod().uid(), attempt_id);
      }
      if constexpr (requires { request.group(); }) {
        // It begins with the attempt's pod.
        if (!request.group().pod_uids().empty())
          return trace_context::TraceParent(request.group().pod_uids(0), attempt_id);
      }
      return OfAttempt(attempt_id);
    }
  }

 private:
  trace_context::TraceParent OfAttempt(uint64_t attempt_id) const;

  uint64_t attempt_id_ = 0;
  std::string pod_uid_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_ATTEMPT_TRACE_H_
