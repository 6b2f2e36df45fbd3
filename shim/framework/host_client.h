// The seam between the scheduling cycle and plugin hosts: the calls of the scheduling thread to one
// host instance.
#ifndef OUTBOARD_SHIM_FRAMEWORK_HOST_CLIENT_H_
#define OUTBOARD_SHIM_FRAMEWORK_HOST_CLIENT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/bind.pb.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/filter.pb.h"
#include "outboard/v1beta1/group.pb.h"
#include "outboard/v1beta1/permit.pb.h"
#include "outboard/v1beta1/plan.pb.h"
#include "outboard/v1beta1/plugin_host.pb.h"
#include "outboard/v1beta1/post_bind.pb.h"
#include "outboard/v1beta1/post_filter.pb.h"
#include "outboard/v1beta1/pre_bind.pb.h"
#include "outboard/v1beta1/pre_enqueue.pb.h"
#include "outboard/v1beta1/queue_sort.pb.h"
#include "outboard/v1beta1/reserve.pb.h"
#include "outboard/v1beta1/score.pb.h"

namespace outboard::framework {

// Whether a host has the capability. Pure.
inline bool HasCapability(const v1beta1::GetHostInfoResponse& info,
                          v1beta1::Capability capability) {
  return absl::c_linear_search(info.capabilities(), capability);
}

// An answer in flight. Calling it, at most once, waits for the answer; dropping it cancels the
// call.
template <typename Response>
class PendingAnswer {
 public:
  // An answer that is already here: `take` does not wait.
  template <typename Take,
            typename = std::enable_if_t<!std::is_same_v<Take, PendingAnswer> &&
                                        std::is_invocable_r_v<absl::StatusOr<Response>, Take&>>>
  PendingAnswer(Take take) : take_(std::move(take)) {}  // NOLINT: a function is an answer.
  // `is_there`: whether `take` would return at once. State that both share may be owned by `take`.
  template <typename Take, typename IsThere>
  PendingAnswer(Take take, IsThere is_there)
      : take_(std::move(take)), is_there_(std::move(is_there)) {}

  // Does not wait. An answer can arrive only while the clients' loop runs.
  bool IsThere() { return is_there_ == nullptr || is_there_(); }
  absl::StatusOr<Response> operator()() { return take_(); }

 private:
  absl::AnyInvocable<absl::StatusOr<Response>()> take_;
  absl::AnyInvocable<bool()> is_there_;
};

// One host instance, ready to be called.
//
// Every method fills in the header's session and instance; the caller fills in attempt, version and
// profile.
//
// Threading: the scheduling thread only. A call blocks that thread until the answer or the
// deadline.
// Lifetime: outlives the attempts that are pinned to it.
// Errors: a status means "no answer"; its code and CallErrorReason say what to do next. A rejected
// pod is an answer. After UNAVAILABLE the instance is gone, and the registry replaces it.
class HostClient {
 public:
  virtual ~HostClient() = default;

  // HandshakeResponse.instance.
  virtual const std::string& instance() const = 0;
  virtual const v1beta1::GetHostInfoResponse& info() const = 0;
  // False once the host is lost or draining. Calls then fail at once.
  virtual bool usable() const = 0;

  // Queues changes for the host's cluster cache and starts to send them; never waits. Later calls
  // carry `request.version()`.
  virtual void SendChanges(const v1beta1::SyncRequest& request) = 0;
  // Whether earlier changes are still on their way. What can wait is not sent then: a host that
  // does not read would make them pile up here.
  virtual bool sending() const { return false; }
  // The cache version that the host acknowledged; the maximum for hosts without a cache.
  virtual int64_t acknowledged_version() const { return std::numeric_limits<int64_t>::max(); }
  // The latest time sent to the host that it acknowledged; everything it did until then has
  // arrived.
  virtual absl::Time acknowledged_time() const { return absl::InfiniteFuture(); }
  // Takes what the host pushed since the last call; does not wait.
  virtual std::vector<v1beta1::SyncResponse> TakePushes() = 0;

  // The fast path: PlanService of a host with BATCH or GROUP_PLAN, otherwise CycleService, to which
  // only `request.cycle()` goes. FAILED_PRECONDITION if the host does not have FUSED_CYCLE.
  // `response` is reused between calls to save allocations.
  virtual absl::Status Cycle(const v1beta1::PlanRequest& request, absl::Time deadline,
                             v1beta1::PlanResponse* response) = 0;

  virtual absl::StatusOr<v1beta1::PreFilterResponse> PreFilter(v1beta1::PreFilterRequest request,
                                                               absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::FilterResponse> Filter(v1beta1::FilterRequest request,
                                                         absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::PostFilterResponse> PostFilter(v1beta1::PostFilterRequest request,
                                                                 absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::PreScoreResponse> PreScore(v1beta1::PreScoreRequest request,
                                                             absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::ScoreResponse> Score(v1beta1::ScoreRequest request,
                                                       absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::SortKeysResponse> SortKeys(v1beta1::SortKeysRequest request,
                                                             absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::PreEnqueueResponse> PreEnqueue(v1beta1::PreEnqueueRequest request,
                                                                 absl::Time deadline) = 0;
  // UNIMPLEMENTED for clients of hosts without plugins at the points of groups.
  virtual absl::StatusOr<v1beta1::GeneratePlacementsResponse> GeneratePlacements(
      v1beta1::GeneratePlacementsRequest request, absl::Time deadline) {
    return absl::UnimplementedError("the host has no plugin at placementGenerate");
  }
  virtual absl::StatusOr<v1beta1::ScorePlacementsResponse> ScorePlacements(
      v1beta1::ScorePlacementsRequest request, absl::Time deadline) {
    return absl::UnimplementedError("the host has no plugin at placementScore");
  }
  virtual absl::StatusOr<v1beta1::ReserveResponse> Reserve(v1beta1::ReserveRequest request,
                                                           absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::UnreserveResponse> Unreserve(v1beta1::UnreserveRequest request,
                                                               absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::PermitResponse> Permit(v1beta1::PermitRequest request,
                                                         absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::PreBindResponse> PreBind(v1beta1::PreBindRequest request,
                                                           absl::Time deadline) = 0;
  virtual absl::StatusOr<v1beta1::BindResponse> Bind(v1beta1::BindRequest request,
                                                     absl::Time deadline) = 0;
  // Never waits, and reports no answer: observers of calls count it. False: not sent, because the
  // host is lost or has not answered kMaxPostBinds earlier ones.
  virtual bool SendPostBind(v1beta1::PostBindRequest request, absl::Time deadline) = 0;
  static constexpr size_t kMaxPostBinds = 256;

  // The same without waiting, so that several hosts work in parallel. These defaults are for
  // clients that cannot have several calls in flight.
  virtual PendingAnswer<v1beta1::PreFilterResponse> Start(v1beta1::PreFilterRequest request,
                                                          absl::Time deadline) {
    return Answered(PreFilter(std::move(request), deadline));
  }
  virtual PendingAnswer<v1beta1::FilterResponse> Start(v1beta1::FilterRequest request,
                                                       absl::Time deadline) {
    return Answered(Filter(std::move(request), deadline));
  }
  virtual PendingAnswer<v1beta1::PreScoreResponse> Start(v1beta1::PreScoreRequest request,
                                                         absl::Time deadline) {
    return Answered(PreScore(std::move(request), deadline));
  }
  virtual PendingAnswer<v1beta1::ScoreResponse> Start(v1beta1::ScoreRequest request,
                                                      absl::Time deadline) {
    return Answered(Score(std::move(request), deadline));
  }

 private:
  template <typename Response>
  static PendingAnswer<Response> Answered(absl::StatusOr<Response> answer) {
    return [answer = std::move(answer)]() mutable { return std::move(answer); };
  }
};

// HostClient::Cycle, and INTERNAL for an answer of no valid form (CheckCycle).
absl::Status CallCycle(HostClient* client, const v1beta1::PlanRequest& request, absl::Time deadline,
                       v1beta1::PlanResponse* response);

// The reason in a failed call's status; REASON_UNSPECIFIED if the call failed on the way.
v1beta1::CallError::Reason CallErrorReason(const absl::Status& status);
// A status with `error`, and the gRPC code that call.proto assigns to its reason.
absl::Status CallErrorStatus(const v1beta1::CallError& error);

}  // namespace outboard::framework

#endif  // OUTBOARD_SHIM_FRAMEWORK_HOST_CLIENT_H_
