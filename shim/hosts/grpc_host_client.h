// A plugin host over gRPC, for the scheduling thread.
#ifndef OUTBOARD_SHIM_HOSTS_GRPC_HOST_CLIENT_H_
#define OUTBOARD_SHIM_HOSTS_GRPC_HOST_CLIENT_H_

#include <grpcpp/channel.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outboard/v1beta1/bind.grpc.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/group.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/post_bind.grpc.pb.h"
#include "outboard/v1beta1/post_filter.grpc.pb.h"
#include "outboard/v1beta1/pre_bind.grpc.pb.h"
#include "outboard/v1beta1/pre_enqueue.grpc.pb.h"
#include "outboard/v1beta1/queue_sort.grpc.pb.h"
#include "outboard/v1beta1/reserve.grpc.pb.h"
#include "outboard/v1beta1/score.grpc.pb.h"
#include "shim/framework/host_client.h"
#include "shim/hosts/attempt_trace.h"
#include "shim/hosts/call_observer.h"
#include "shim/hosts/cycle_stream.h"
#include "shim/hosts/endpoint.h"
#include "shim/hosts/handshake.h"
#include "shim/hosts/host_limits.h"
#include "shim/hosts/host_loop.h"
#include "shim/hosts/push_inbox.h"
#include "shim/hosts/readiness_watch.h"

namespace outboard::hosts {

// One instance of a host.
//
// `session_id` is used with this instance only: a process that took its place at the address then
// knows no such session, and never answers for it.
//
// Usage: construct → StartConfigure, until TakeConfigured has the answer → SendChanges(snapshot…) →
// usable() once the host acknowledged it. Streams open by themselves.
//
// Threading: scheduling thread.
// Lifetime: `loop` and the observer outlive it and its calls.
// Errors: as framework::HostClient.
class GrpcHostClient final : public framework::HostClient {
 public:
  GrpcHostClient(HostLoop* loop, std::string session_id, HostConnection host,
                 const HostLimits& limits = HostLimits());
  ~GrpcHostClient() override;

  // Waits for the answer; for programs that have nothing else to do.
  absl::StatusOr<v1beta1::ConfigureResponse> Configure(v1beta1::ConfigureRequest request,
                                                       absl::Time deadline);
  // Does not wait: a host that does not serve yet must not delay the serving ones.
  void StartConfigure(v1beta1::ConfigureRequest request, absl::Time deadline);
  // The answer once it has arrived; nullopt before that, and after it was taken.
  std::optional<absl::StatusOr<v1beta1::ConfigureResponse>> TakeConfigured();
  // The host is usable once it acknowledges `version`.
  void AwaitSnapshot(int64_t version) { snapshot_version_ = version; }
  // The host keeps no cluster cache: it is usable once it reports that it is ready.
  void AwaitReady();
  // Observes the calls that begin from now on; null: none. Cycles that the scheduler does not wait
  // for are not observed.
  void SetCallObserver(CallObserver* observer) { call_observer_ = observer; }
  // No new calls from now on.
  void MarkDraining() { draining_ = true; }
  // Notifies the host that this session ends, without waiting for an answer.
  void SendEndSession();
  // The connection broke, or the instance pushed more than its limits allow; it is gone
  // permanently.
  bool lost() const { return lost_; }
  bool pushed_too_much() const { return pushes_.overflowed(); }
  // Since when the host has not read a message of the change stream; InfiniteFuture: it has read
  // all of them.
  absl::Time unread_since() const;
  int64_t acknowledged_version() const override { return acknowledged_version_; }
  absl::Time acknowledged_time() const override { return acknowledged_time_; }

  const std::string& instance() const override { return instance_; }
  const v1beta1::GetHostInfoResponse& info() const override { return info_; }
  bool usable() const override {
    if (lost_ || draining_) return false;
    if (readiness_ != nullptr) return readiness_->ready();
    return snapshot_version_ > 0 && acknowledged_version_ >= snapshot_version_;
  }
  // A cycle whose answer the scheduler does not wait for; one at a time. False: the stream is not
  // open yet, or an answer is outstanding.
  bool StartCycle(const v1beta1::PlanRequest& request);
  // The answer once it has arrived; an error if the stream broke.
  std::optional<absl::StatusOr<v1beta1::PlanResponse>> TakeCycle();
  bool cycle_under_way() const;
  // Stops waiting.
  void DropCycle();
  bool sending() const override;
  void SendChanges(const v1beta1::SyncRequest& request) override;
  std::vector<v1beta1::SyncResponse> TakePushes() override;
  absl::Status Cycle(const v1beta1::PlanRequest& request, absl::Time deadline,
                     v1beta1::PlanResponse* response) override;
  absl::StatusOr<v1beta1::PreFilterResponse> PreFilter(v1beta1::PreFilterRequest request,
                                                       absl::Time deadline) override;
  absl::StatusOr<v1beta1::FilterResponse> Filter(v1beta1::FilterRequest request,
                                                 absl::Time deadline) override;
  absl::StatusOr<v1beta1::PostFilterResponse> PostFilter(v1beta1::PostFilterRequest request,
                                                         absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreScoreResponse> PreScore(v1beta1::PreScoreRequest request,
                                                     absl::Time deadline) override;
  absl::StatusOr<v1beta1::ScoreResponse> Score(v1beta1::ScoreRequest request,
                                               absl::Time deadline) override;
  absl::StatusOr<v1beta1::SortKeysResponse> SortKeys(v1beta1::SortKeysRequest request,
                                                     absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreEnqueueResponse> PreEnqueue(v1beta1::PreEnqueueRequest request,
                                                         absl::Time deadline) override;
  absl::StatusOr<v1beta1::GeneratePlacementsResponse> GeneratePlacements(
      v1beta1::GeneratePlacementsRequest request, absl::Time deadline) override;
  absl::StatusOr<v1beta1::ScorePlacementsResponse> ScorePlacements(
      v1beta1::ScorePlacementsRequest request, absl::Time deadline) override;
  absl::StatusOr<v1beta1::ReserveResponse> Reserve(v1beta1::ReserveRequest request,
                                                   absl::Time deadline) override;
  absl::StatusOr<v1beta1::UnreserveResponse> Unreserve(v1beta1::UnreserveRequest request,
                                                       absl::Time deadline) override;
  absl::StatusOr<v1beta1::PermitResponse> Permit(v1beta1::PermitRequest request,
                                                 absl::Time deadline) override;
  absl::StatusOr<v1beta1::PreBindResponse> PreBind(v1beta1::PreBindRequest request,
                                                   absl::Time deadline) override;
  absl::StatusOr<v1beta1::BindResponse> Bind(v1beta1::BindRequest request,
                                             absl::Time deadline) override;
  bool SendPostBind(v1beta1::PostBindRequest request, absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::PreFilterResponse> Start(v1beta1::PreFilterRequest request,
                                                             absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::FilterResponse> Start(v1beta1::FilterRequest request,
                                                          absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::PreScoreResponse> Start(v1beta1::PreScoreRequest request,
                                                            absl::Time deadline) override;
  framework::PendingAnswer<v1beta1::ScoreResponse> Start(v1beta1::ScoreRequest request,
                                                         absl::Time deadline) override;

 private:
  template <typename Response>
  class UnaryCall;
  class SyncStream;
  class EndSessionCall;
  class PostBindCall;
  class ConfigureCall;

  template <typename Response, typename Stub, typename Request, typename Prepare>
  absl::StatusOr<Response> Unary(Call call, Stub* stub, Prepare prepare, Request request,
                                 absl::Time deadline);
  template <typename Response, typename Stub, typename Request, typename Prepare>
  framework::PendingAnswer<Response> Begin(Call call_kind, Stub* stub, Prepare prepare,
                                           Request request, absl::Time deadline);
  // Cycle, without observing it. `response` is empty unless the host answered.
  absl::Status Exchange(const v1beta1::PlanRequest& request, absl::Time deadline,
                        v1beta1::PlanResponse* response);
  // Opens the stream unless it is open.
  void OpenCycleStream();
  // What the metadata of a call say about its attempt.
  template <typename Request>
  trace_context::TraceParent TraceParentOf(const Request& request);
  // Whether a call can begin: waits for the acknowledgement of all changes if the host asks for it.
  absl::Status AwaitAcknowledgement(absl::Time deadline);
  bool is_behind() const { return awaits_acks_ && acknowledged_version_ < sent_version_; }
  // Notes what the answer of a call reveals about the connection.
  template <typename Response>
  absl::StatusOr<Response> NoteAnswer(absl::StatusOr<Response> answer);
  void OnPush(v1beta1::SyncResponse push);

  HostLoop* const loop_;
  const std::string session_id_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::string instance_;
  const v1beta1::GetHostInfoResponse info_;
  const bool awaits_acks_;
  const bool plans_;  // PlanService in place of CycleService
  CallObserver* call_observer_ = nullptr;

  std::unique_ptr<v1beta1::PluginHostService::Stub> host_stub_;
  std::unique_ptr<v1beta1::ClusterStateService::Stub> state_stub_;
  std::unique_ptr<v1beta1::CycleService::Stub> cycle_stub_;
  std::unique_ptr<v1beta1::PlanService::Stub> plan_stub_;
  std::unique_ptr<v1beta1::PreFilterService::Stub> pre_filter_stub_;
  std::unique_ptr<v1beta1::FilterService::Stub> filter_stub_;
  std::unique_ptr<v1beta1::PostFilterService::Stub> post_filter_stub_;
  std::unique_ptr<v1beta1::PreScoreService::Stub> pre_score_stub_;
  std::unique_ptr<v1beta1::ScoreService::Stub> score_stub_;
  std::unique_ptr<v1beta1::QueueSortService::Stub> queue_sort_stub_;
  std::unique_ptr<v1beta1::PreEnqueueService::Stub> pre_enqueue_stub_;
  std::unique_ptr<v1beta1::GroupService::Stub> group_stub_;
  std::unique_ptr<v1beta1::ReserveService::Stub> reserve_stub_;
  std::unique_ptr<v1beta1::PermitService::Stub> permit_stub_;
  std::unique_ptr<v1beta1::PreBindService::Stub> pre_bind_stub_;
  std::unique_ptr<v1beta1::BindService::Stub> bind_stub_;
  std::unique_ptr<v1beta1::PostBindService::Stub> post_bind_stub_;

  // Streams own themselves: they live until gRPC has returned their last operation.
  SyncStream* sync_ = nullptr;
  CycleStream* cycle_ = nullptr;
  AttemptTrace attempt_trace_;
  bool cycle_introduced_ = false;  // the stream's first message, with the session, was sent
  // Like the streams.
  ConfigureCall* configure_ = nullptr;
  ReadinessWatch* readiness_ = nullptr;  // of a host without a cluster cache
  std::optional<absl::StatusOr<v1beta1::ConfigureResponse>> configured_;

  // Calls of PostBind without an answer. Shared with them: they may outlive this.
  const std::shared_ptr<size_t> post_binds_ = std::make_shared<size_t>(0);

  int64_t snapshot_version_ = 0;
  int64_t acknowledged_version_ = 0;
  absl::Time acknowledged_time_ = absl::InfinitePast();
  int64_t sent_version_ = 0;
  bool lost_ = false;
  bool draining_ = false;
  PushInbox pushes_;
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_GRPC_HOST_CLIENT_H_
