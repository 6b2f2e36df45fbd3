// Asks a host the questions of one cycle, one after the other, without waiting.
#ifndef OUTBOARD_SHIM_HOSTS_SHADOW_CYCLE_RUNNER_H_
#define OUTBOARD_SHIM_HOSTS_SHADOW_CYCLE_RUNNER_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.pb.h"
#include "shim/framework/host_client.h"

namespace outboard::hosts {

// Complete, as they are sent. Absent: the point is not called.
struct ChainQuestions {
  std::optional<v1beta1::PreFilterRequest> pre_filter;
  std::optional<v1beta1::FilterRequest> filter;
  std::optional<v1beta1::PreScoreRequest> pre_score;
  std::optional<v1beta1::ScoreRequest> score;
};

// PreFilter → Filter → PreScore → Score. Ends after a rejection at PreFilter or a plugin's failure,
// because a later question makes no sense then.
//
// Usage: construct → Take, until it has a value.
// Threading: scheduling thread.
// Lifetime: `client` outlives it; its destructor cancels the call in flight.
// Errors: of Take's value: the failed call, by its point.
class ShadowCycleRunner {
 public:
  // `timeout`: the deadline of each answer.
  ShadowCycleRunner(framework::HostClient* client, ChainQuestions questions, absl::Duration timeout)
      : client_(client), questions_(std::move(questions)), timeout_(timeout) {}

  // Sends the next question if an answer has arrived. Returns all answers once there is no further
  // question.
  std::optional<absl::StatusOr<v1beta1::CycleEvaluation>> Take();

 private:
  template <typename Response>
  using Pending = std::optional<framework::PendingAnswer<Response>>;

  // True once this point is finished; `answer` is its answer, if there was a question.
  template <typename Request, typename Response>
  absl::StatusOr<bool> Advance(const char* point, std::optional<Request>* question,
                               Pending<Response>* pending, Response* answer);
  absl::StatusOr<bool> AdvanceAll();

  framework::HostClient* const client_;
  ChainQuestions questions_;
  const absl::Duration timeout_;
  v1beta1::CycleEvaluation answers_;
  Pending<v1beta1::PreFilterResponse> pre_filter_;
  Pending<v1beta1::FilterResponse> filter_;
  Pending<v1beta1::PreScoreResponse> pre_score_;
  Pending<v1beta1::ScoreResponse> score_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHADOW_CYCLE_RUNNER_H_
