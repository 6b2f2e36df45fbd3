// The server's side of Cycle and Plan.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/services/deferred_calls.h"
#include "plugin_host/services/stream_step.h"

namespace outboard::services {

// In what the two RPCs differ.
struct CycleRpc {
  using Service = v1beta1::CycleService::AsyncService;
  using Request = v1beta1::CycleRequest;
  using Response = v1beta1::CycleResponse;
  static constexpr auto kAccept = &Service::RequestCycle;
  static constexpr auto kAnswer = &runtime::Session::Cycle;
  static v1beta1::CycleRequest& CycleOf(Request& request) { return request; }
};
struct PlanRpc {
  using Service = v1beta1::PlanService::AsyncService;
  using Request = v1beta1::PlanRequest;
  using Response = v1beta1::PlanResponse;
  static constexpr auto kAccept = &Service::RequestPlan;
  static constexpr auto kAnswer = &runtime::Session::Plan;
  static v1beta1::CycleRequest& CycleOf(Request& request) { return *request.mutable_cycle(); }
};

// What all streams of an RPC share.
template <typename Rpc>
struct CycleStreams {
  typename Rpc::Service* service;
  grpc::ServerCompletionQueue* queue;
  runtime::Host* host;
  DeferredCalls* parking;
};

// One stream: reads a request, answers it, reads the next. Messages are reused.
//
// Threading: the engine's thread.
// Lifetime: owns itself: gone once gRPC has returned every operation. `streams` must outlive it.
// Errors:    within the answers.
template <typename Rpc>
class CycleStream final : public DeferredCall {
 public:
  static void Listen(CycleStreams<Rpc>* streams) { new CycleStream(streams); }

  bool TryAnswer(absl::Time now) override;
  // An operation ended; the last one deletes the stream.
  void OperationEnds();

 private:
  explicit CycleStream(CycleStreams<Rpc>* streams);
  ~CycleStream() override;
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);

  // Evaluates; false: the cache has not reached the version.
  bool Evaluate(absl::Time now);
  void Read();
  void AnswerOrPark();
  // The call no longer waits; it has left the deferred calls, or is about to.
  void Unpark();
  void OperationBegins() { ++operations_; }

  CycleStreams<Rpc>* const streams_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<typename Rpc::Response, typename Rpc::Request> stream_;
  StreamStep<CycleStream, &CycleStream::OnAccepted> accepted_{this};
  StreamStep<CycleStream, &CycleStream::OnRead> read_{this};
  StreamStep<CycleStream, &CycleStream::OnWritten> written_{this};
  StreamStep<CycleStream, &CycleStream::OnFinished> finished_{this};
  typename Rpc::Request request_;
  typename Rpc::Response response_;
  std::string session_id_;
  absl::Time give_up_;
  bool writing_ = false;
  bool have_request_ = false;
  bool parked_ = false;
  bool closed_ = false;
  int operations_ = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
