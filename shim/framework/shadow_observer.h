// The seam for sending the questions of real cycles to a second host instance as well.
#ifndef OUTBOARD_SHIM_FRAMEWORK_SHADOW_OBSERVER_H_
#define OUTBOARD_SHIM_FRAMEWORK_SHADOW_OBSERVER_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/plan.pb.h"
#include "shim/framework/algorithm.h"
#include "shim/framework/host_call_trace.h"
#include "shim/kube/objects.h"

namespace outboard::framework {

// A cycle with a usable answer of one host in one message. With several hosts, `response` is this
// host's answer and `result` that of all.
struct AnsweredCycle {
  const std::string& host_name;
  const kube::PodObject& pod;
  const AlgorithmProfile& profile;
  const v1beta1::PlanRequest& request;
  const v1beta1::PlanResponse& response;
  const AlgorithmResult& result;
  // The length of the searched list, and how many feasible nodes were enough.
  uint32_t num_candidates = 0;
  uint32_t num_to_find = 0;
};

// A cycle in which a host was called point by point, alone or beside others, and the attempt got
// all the answers that it needed.
struct AnsweredPoints {
  const std::string& host_name;
  const kube::PodObject& pod;
  const AlgorithmProfile& profile;
  uint64_t attempt_id = 0;
  const HostCallTrace& trace;
  const AlgorithmResult& result;
  // As above. The list is the attempt's; the host may have been asked about a part of it.
  uint32_t num_candidates = 0;
  uint32_t num_to_find = 0;
};

// Threading: called on the scheduling thread between the answer and its consequences, so the
// cluster state is still the state that the host saw. Must not wait and must not change anything.
class ShadowObserver {
 public:
  virtual ~ShadowObserver() = default;
  virtual void OnCycle(const AnsweredCycle& cycle, absl::Time now) = 0;
  // Whether OnCallsRecorded is wanted for this host in the next cycle; otherwise nothing is
  // recorded.
  virtual bool RecordsCalls(const std::string& host_name) const = 0;
  virtual void OnCallsRecorded(const AnsweredPoints& points, absl::Time now) = 0;
};

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_SHADOW_OBSERVER_H_
