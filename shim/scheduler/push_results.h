// What becomes of the pushes of hosts, and what a host has still to learn of that.
#ifndef OUTBOARD_SHIM_SCHEDULER_PUSH_RESULTS_H_
#define OUTBOARD_SHIM_SCHEDULER_PUSH_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "outboard/v1beta1/cluster_state.pb.h"

namespace outboard::scheduler {

// What became of a push. A value.
struct PushEnd {
  using Outcome = v1beta1::PushResult::Outcome;
  static PushEnd Applied() { return {v1beta1::PushResult::OUTCOME_APPLIED, "", absl::OkStatus()}; }
  // Not carried out, without a fault of the host.
  static PushEnd NotApplied(Outcome outcome, absl::string_view why) {
    return {outcome, std::string(why), absl::OkStatus()};
  }
  // It breaks the contract.
  static PushEnd Refused(const absl::Status& why) {
    return {v1beta1::PushResult::OUTCOME_FORBIDDEN, std::string(why.message()), why};
  }
  // It is in the name of a plugin that the host does not serve.
  static PushEnd NotServed(absl::string_view plugin);
  // Of a push about pods: whether it concerns one of them, and whether one of them is known.
  static PushEnd AboutPods(bool any_concerned, bool any_known);

  // UNSPECIFIED: not known yet, or the contract has no answer to this push.
  Outcome outcome = v1beta1::PushResult::OUTCOME_UNSPECIFIED;
  // Unless applied: why.
  std::string message;
  // Not OK: a fault of the host.
  absl::Status status;
};

// The results that one host has still to receive.
//
// Threading: thread-compatible. Lifetime: of one Sync stream.
// Errors: none; a host that does not read loses the results beyond kMaxResults.
class PushResultBuffer {
 public:
  // As many as the shim holds pushes of a host.
  static constexpr size_t kMaxResults = 20000;

  // `push_id` 0: the host wants no answer.
  void Add(uint64_t push_id, PushEnd::Outcome outcome, absl::string_view message);
  bool empty() const { return results_.empty(); }
  // Moves results into a message that has nothing else, as many as fit.
  void TakeInto(v1beta1::SyncRequest* request);
  void Clear() { results_.clear(); }

 private:
  std::deque<v1beta1::PushResult> results_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_PUSH_RESULTS_H_
