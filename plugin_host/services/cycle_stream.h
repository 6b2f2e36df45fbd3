// The server's side of Cycle.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <string>

#include "absl/time/time.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/services/parking.h"
#include "plugin_host/services/stream_step.h"
#include "proto/outboard/v1alpha1/cycle.grpc.pb.h"

namespace outboard::services {

// What all Cycle streams share.
struct CycleStreams {
  v1alpha1::CycleService::AsyncService* service;
  grpc::ServerCompletionQueue* queue;
  runtime::Host* host;
  Parking* parking;
};

// One Cycle stream: reads a request, answers it, reads the next. Messages are reused.
//
// Threading: the engine's thread.
// Lifetime:  owns itself: gone once gRPC has returned every operation. `streams` must outlive it.
// Errors:    within the answers.
class CycleStream final : public Parkable {
 public:
  static void Listen(CycleStreams* streams) { new CycleStream(streams); }

  bool TryAnswer(absl::Time now) override;
  // An operation is over; with the last one the stream goes.
  void OperationEnds();

 private:
  explicit CycleStream(CycleStreams* streams);
  ~CycleStream() override;
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);

  // Evaluates; false: the version is not reached yet.
  bool Evaluate(absl::Time now);
  void Read();
  void AnswerOrPark();
  // The call waits no more; it has left the parking, or is about to.
  void Unpark();
  void OperationBegins() { ++operations_; }

  CycleStreams* const streams_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1alpha1::CycleResponse, v1alpha1::CycleRequest> stream_;
  StreamStep<CycleStream, &CycleStream::OnAccepted> accepted_{this};
  StreamStep<CycleStream, &CycleStream::OnRead> read_{this};
  StreamStep<CycleStream, &CycleStream::OnWritten> written_{this};
  StreamStep<CycleStream, &CycleStream::OnFinished> finished_{this};
  v1alpha1::CycleRequest request_;
  v1alpha1::CycleResponse response_;
  std::string session_id_;
  std::string host_instance_;
  absl::Time give_up_;
  bool writing_ = false;
  bool have_request_ = false;
  bool parked_ = false;
  bool closed_ = false;
  int operations_ = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_CYCLE_STREAM_H_
