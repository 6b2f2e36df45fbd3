// The server's side of Cycle.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <string>

#include "absl/time/time.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/services/deferred_calls.h"
#include "plugin_host/services/stream_step.h"

namespace outboard::services {

// What all Cycle streams share.
struct CycleStreams {
  v1beta1::CycleService::AsyncService* service;
  grpc::ServerCompletionQueue* queue;
  runtime::Host* host;
  DeferredCalls* parking;
};

// One Cycle stream: reads a request, answers it, reads the next. Messages are reused.
//
// Threading: the engine's thread.
// Lifetime: owns itself: gone once gRPC has returned every operation. `streams` must outlive it.
// Errors:    within the answers.
class CycleStream final : public DeferredCall {
 public:
  static void Listen(CycleStreams* streams) { new CycleStream(streams); }

  bool TryAnswer(absl::Time now) override;
  // An operation ended; the last one deletes the stream.
  void OperationEnds();

 private:
  explicit CycleStream(CycleStreams* streams);
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

  CycleStreams* const streams_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1beta1::CycleResponse, v1beta1::CycleRequest> stream_;
  StreamStep<CycleStream, &CycleStream::OnAccepted> accepted_{this};
  StreamStep<CycleStream, &CycleStream::OnRead> read_{this};
  StreamStep<CycleStream, &CycleStream::OnWritten> written_{this};
  StreamStep<CycleStream, &CycleStream::OnFinished> finished_{this};
  v1beta1::CycleRequest request_;
  v1beta1::CycleResponse response_;
  std::string session_id_;
  std::string instance_;
  absl::Time give_up_;
  bool writing_ = false;
  bool have_request_ = false;
  bool parked_ = false;
  bool closed_ = false;
  int operations_ = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
