// The streams of the fast path, and their answers.
#ifndef OUTBOARD_CLI_CONFORMANCE_FUSED_H_
#define OUTBOARD_CLI_CONFORMANCE_FUSED_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/conformance/answers.h"
#include "cli/conformance/session.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"

namespace outboard::conformance {

inline constexpr int64_t kFusedDeadlineMicros = 5'000'000;

// In what the two RPCs differ.
struct CycleRpc {
  using Service = v1beta1::CycleService;
  using Request = v1beta1::CycleRequest;
  using Response = v1beta1::CycleResponse;
  static constexpr char kService[] = "CycleService";
  static constexpr auto kOpen = &Service::Stub::Cycle;
  static constexpr const Rule& kErrorsRule = kFusedErrors;
  static constexpr const Rule& kAttemptRule = kFusedAttempt;
  static v1beta1::CycleRequest& CycleOf(Request& request) { return request; }
};
struct PlanRpc {
  using Service = v1beta1::PlanService;
  using Request = v1beta1::PlanRequest;
  using Response = v1beta1::PlanResponse;
  static constexpr char kService[] = "PlanService";
  static constexpr auto kOpen = &Service::Stub::Plan;
  static constexpr const Rule& kErrorsRule = kPlanErrors;
  static constexpr const Rule& kAttemptRule = kPlanAttempt;
  static v1beta1::CycleRequest& CycleOf(Request& request) { return *request.mutable_cycle(); }
};

// A Cycle or Plan stream of a session.
//
// Threading: thread-compatible.
// Lifetime: the session outlives it; the destructor ends the stream.
// Errors: of the contract, by its rules.
template <typename Rpc>
class FusedStream {
 public:
  using Request = typename Rpc::Request;
  using Response = typename Rpc::Response;

  explicit FusedStream(const Session& session)
      : session_(session), stub_(Rpc::Service::NewStub(session.channel())) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    stream_ = (stub_.get()->*Rpc::kOpen)(&context_);
  }
  ~FusedStream() {
    context_.TryCancel();
    stream_->Finish();
  }
  FusedStream(const FusedStream&) = delete;
  FusedStream& operator=(const FusedStream&) = delete;

  Request MakeRequest(uint64_t attempt, const std::string& uid) const {
    session_.AwaitAcknowledgement();
    Request request;
    v1beta1::CycleRequest& cycle = Rpc::CycleOf(request);
    *cycle.mutable_header() = session_.Header(attempt);
    if (introduced_) {
      cycle.mutable_header()->clear_session_id();
    }
    cycle.set_deadline_micros(kFusedDeadlineMicros);
    cycle.set_pod_uid(uid);
    cycle.mutable_search();
    return request;
  }
  void Send(const Request& request) {
    introduced_ = true;
    stream_->Write(request);
  }
  absl::Status Receive(uint64_t attempt, Response* response) {
    if (!stream_->Read(response)) {
      return Wrong(Rpc::kErrorsRule,
                   absl::StrCat("the stream ends, or does not answer attempt ", attempt));
    }
    if (response->attempt_id() == attempt) return absl::OkStatus();
    return Malformed(
        Rpc::kService,
        Wrong(Rpc::kAttemptRule, absl::StrCat(response->attempt_id(), " instead of ", attempt)));
  }
  absl::Status Exchange(Request request, Response* response) {
    Send(request);
    return Receive(Rpc::CycleOf(request).header().attempt_id(), response);
  }

 private:
  const Session& session_;
  std::unique_ptr<typename Rpc::Service::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream_;
  bool introduced_ = false;
};

// Converts a fused answer to a round. `score_single`: of the request.
absl::Status ToRound(const Kit& kit, const v1beta1::CycleResponse& response, bool score_single,
                     Round* round);

}  // namespace outboard::conformance

#endif  // OUTBOARD_CLI_CONFORMANCE_FUSED_H_
