// The seam between the cycle and plugin hosts: what the scheduling thread asks of one host
// instance.
#ifndef OUTBOARD_SHIM_CYCLE_HOST_CLIENT_H_
#define OUTBOARD_SHIM_CYCLE_HOST_CLIENT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/outboard/v1alpha1/cluster_state.pb.h"
#include "proto/outboard/v1alpha1/cycle.pb.h"
#include "proto/outboard/v1alpha1/filter.pb.h"
#include "proto/outboard/v1alpha1/permit.pb.h"
#include "proto/outboard/v1alpha1/plugin_host.pb.h"
#include "proto/outboard/v1alpha1/post_filter.pb.h"
#include "proto/outboard/v1alpha1/pre_bind.pb.h"
#include "proto/outboard/v1alpha1/pre_enqueue.pb.h"
#include "proto/outboard/v1alpha1/queue_sort.pb.h"
#include "proto/outboard/v1alpha1/reserve.pb.h"
#include "proto/outboard/v1alpha1/score.pb.h"

namespace outboard::cycle {

// One host instance, ready to be called.
//
// Every method fills in the header's session and instance; the caller fills in attempt, version and
// profile. Threading: called on the scheduling thread only. A call blocks that thread until the
// answer or the deadline. Lifetime:  outlives the attempts that are pinned to it. Errors:    an
// absl::Status means "no answer"; its code and the payload read by `CallErrorReason` say what to do
// next. A rejected pod
//            is an answer. After UNAVAILABLE the instance is gone: the registry replaces it.
class HostClient {
 public:
  virtual ~HostClient() = default;

  virtual const v1alpha1::GetHostInfoResponse& info() const = 0;
  // False once the host is lost or draining; calls then fail at once.
  virtual bool usable() const = 0;

  // Queues changes for the host's mirror and starts sending them; never waits. Later calls carry
  // `request.version()`.
  virtual void SendChanges(const v1alpha1::SyncRequest& request) = 0;
  // Takes what the host pushed since the last call, without waiting.
  virtual std::vector<v1alpha1::SyncResponse> TakePushes() = 0;

  // The fast path; FAILED_PRECONDITION where the host has no FUSED_CYCLE. `response` is reused
  // between calls to save allocations.
  virtual absl::Status Cycle(const v1alpha1::CycleRequest& request, absl::Time deadline,
                             v1alpha1::CycleResponse* response) = 0;

  virtual absl::StatusOr<v1alpha1::PreFilterResponse> PreFilter(v1alpha1::PreFilterRequest request,
                                                                absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::FilterResponse> Filter(v1alpha1::FilterRequest request,
                                                          absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::PostFilterResponse> PostFilter(
      v1alpha1::PostFilterRequest request, absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::PreScoreResponse> PreScore(v1alpha1::PreScoreRequest request,
                                                              absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::ScoreResponse> Score(v1alpha1::ScoreRequest request,
                                                        absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::SortKeysResponse> SortKeys(v1alpha1::SortKeysRequest request,
                                                              absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::PreEnqueueResponse> PreEnqueue(
      v1alpha1::PreEnqueueRequest request, absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::ReserveResponse> Reserve(v1alpha1::ReserveRequest request,
                                                            absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::UnreserveResponse> Unreserve(v1alpha1::UnreserveRequest request,
                                                                absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::PermitResponse> Permit(v1alpha1::PermitRequest request,
                                                          absl::Time deadline) = 0;
  virtual absl::StatusOr<v1alpha1::PreBindResponse> PreBind(v1alpha1::PreBindRequest request,
                                                            absl::Time deadline) = 0;
};

// The reason that a failed call's status carries; REASON_UNSPECIFIED if the call failed on the way.
v1alpha1::CallError::Reason CallErrorReason(const absl::Status& status);
// A status that carries `error`, with the gRPC code that call.proto gives for its reason.
absl::Status CallErrorStatus(const v1alpha1::CallError& error);

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_HOST_CLIENT_H_
