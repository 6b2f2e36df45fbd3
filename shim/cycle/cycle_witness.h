// For whoever wants to put the questions of real cycles to another host as well.
#ifndef OUTBOARD_SHIM_CYCLE_CYCLE_WITNESS_H_
#define OUTBOARD_SHIM_CYCLE_CYCLE_WITNESS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "shim/cycle/algorithm.h"
#include "shim/kube/objects.h"

namespace outboard::cycle {

// A cycle that one host answered in one message, and whose answer could be used. Where other hosts
// had a say, too, it is this one's answer, and the result is that of all.
struct AnsweredCycle {
  const std::string& host_name;
  const kube::PodObject& pod;
  const AlgorithmProfile& profile;
  const v1alpha1::CycleRequest& request;
  const v1alpha1::CycleResponse& response;
  const AlgorithmResult& result;
  // The list that was searched, and how many feasible nodes were enough.
  uint32_t num_candidates = 0;
  uint32_t num_to_find = 0;
};

// A cycle in which a host was asked point by point, alone or beside others, and the attempt had all
// the answers that it needed.
struct AnsweredPoints {
  const std::string& host_name;
  const kube::PodObject& pod;
  const AlgorithmProfile& profile;
  uint64_t attempt_id = 0;
  const HostExchange& exchange;
  const AlgorithmResult& result;
  // As above; the list is that of the attempt, of which the host may have been asked a part.
  uint32_t num_candidates = 0;
  uint32_t num_to_find = 0;
};

// Threading: called on the scheduling thread, between the answer and what follows from it: the
// cluster is still as the host saw it. Must not wait, and must not change anything.
class CycleWitness {
 public:
  virtual ~CycleWitness() = default;
  virtual void OnCycle(const AnsweredCycle& cycle, absl::Time now) = 0;
  // Whether anybody wants the next cycle's OnPoints for this host; else nothing is kept for it.
  virtual bool WantsPoints(const std::string& host_name) const = 0;
  virtual void OnPoints(const AnsweredPoints& points, absl::Time now) = 0;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_CYCLE_WITNESS_H_
