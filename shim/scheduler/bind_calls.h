// Who binds a pod: the questions to plugins at Bind, and the notices to plugins at PostBind.
#ifndef OUTBOARD_SHIM_SCHEDULER_BIND_CALLS_H_
#define OUTBOARD_SHIM_SCHEDULER_BIND_CALLS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/map.h"
#include "shim/scheduler/attempt.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// The outcome of asking the plugins at Bind.
struct BindDecision {
  enum class Kind {
    kShimBinds,        // with `annotations`
    kReadOutcome,      // the plugin bound the pod or may have done so; only the API server knows
    kFailed,           // not bound, and it will not be; `message` is the text of the pod's event
    kHostUnavailable,  // a host that has to be asked cannot be called; `status` is why
  };
  Kind kind = Kind::kShimBinds;
  std::string plugin{};  // that decided; empty: DefaultBinder, or none
  std::string host_name{};
  google::protobuf::Map<std::string, std::string> annotations{};
  // With kReadOutcome: why the call has no usable answer; empty: the plugin answered that it bound.
  std::string message{};
  absl::Status status{};
};

// Asks the plugins of a profile one after the other, until one does not skip.
//
// Threading: the scheduling thread; a question blocks it for at most the deadline, a notice never.
// Errors: in BindDecision. A notice that cannot be sent is logged and dropped.
class BindCalls {
 public:
  BindCalls(SchedulerState* state, HostCalls* host_calls)
      : state_(*state), host_calls_(*host_calls) {}

  BindDecision Decide(const Attempt& attempt, absl::Time now);
  // The bind is confirmed.
  void SendPostBind(const Attempt& attempt, absl::Time now);

 private:
  SchedulerState& state_;
  HostCalls& host_calls_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_BIND_CALLS_H_
