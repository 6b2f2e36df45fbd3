// The questions of one cycle, put to a host one after the other while nobody waits.
#ifndef OUTBOARD_SHIM_HOSTS_SHADOW_CHAIN_H_
#define OUTBOARD_SHIM_HOSTS_SHADOW_CHAIN_H_

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "shim/cycle/host_client.h"

namespace outboard::hosts {

// Complete, as they are sent. Absent: nothing is asked at the point.
struct ChainQuestions {
  std::optional<v1alpha1::PreFilterRequest> pre_filter;
  std::optional<v1alpha1::FilterRequest> filter;
  std::optional<v1alpha1::PreScoreRequest> pre_score;
  std::optional<v1alpha1::ScoreRequest> score;
};

// PreFilter → Filter → PreScore → Score. A rejection at PreFilter or a plugin's failure ends it,
// for then a later question makes no sense.
//
// Used as: construct → Take, until it has a value.
// Threading: scheduling thread. Lifetime: `client` outlives it; dropped, it lets the call under way
// go. Errors: of Take's value: the call that failed, by its point.
class ShadowChain {
 public:
  // `patience`: how long each answer may take.
  ShadowChain(cycle::HostClient* client, ChainQuestions questions, absl::Duration patience)
      : client_(client), questions_(std::move(questions)), patience_(patience) {}

  // Asks on if an answer has come. All answers, once there is nothing more to ask.
  std::optional<absl::StatusOr<v1alpha1::CycleResponse>> Take();

 private:
  template <typename Response>
  using Pending = std::optional<cycle::PendingAnswer<Response>>;

  // True once there is no question at this point any more; `answer` is its answer if it had one.
  template <typename Request, typename Response>
  absl::StatusOr<bool> Advance(const char* point, std::optional<Request>* question,
                               Pending<Response>* pending, Response* answer);
  absl::StatusOr<bool> AdvanceAll();

  cycle::HostClient* const client_;
  ChainQuestions questions_;
  const absl::Duration patience_;
  v1alpha1::CycleResponse answers_;
  Pending<v1alpha1::PreFilterResponse> pre_filter_;
  Pending<v1alpha1::FilterResponse> filter_;
  Pending<v1alpha1::PreScoreResponse> pre_score_;
  Pending<v1alpha1::ScoreResponse> score_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_SHADOW_CHAIN_H_
