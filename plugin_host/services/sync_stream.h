// The server's side of Sync.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_SYNC_STREAM_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_SYNC_STREAM_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "plugin_host/runtime/host.h"
#include "plugin_host/services/deferred_calls.h"
#include "plugin_host/services/stream_step.h"

namespace outboard::services {

class SyncStream;

// What all Sync streams share.
struct SyncStreams {
  v1beta1::ClusterStateService::AsyncService* service;
  grpc::ServerCompletionQueue* queue;
  runtime::Host* host;
  DeferredCalls* parking;
  std::map<std::string, SyncStream*> by_session;  // The live stream of each session.
};

// One Sync stream, from waiting for a client to its end. A new stream of a session replaces the old
// one.
//
// Threading: the engine's thread.
// Lifetime:  owns itself: gone once gRPC has returned every operation. `streams` must outlive it.
// Errors:    a message that does not apply ends the stream with FAILED_PRECONDITION.
class SyncStream {
 public:
  static void Listen(SyncStreams* streams) { new SyncStream(streams); }

  // Queues a push.
  void Push(v1beta1::SyncResponse response);
  // Acknowledges what was applied since the last acknowledgement; about once a second.
  void AckIfBehind();
  // An operation ended; the last one deletes the stream.
  void OperationEnds();

 private:
  explicit SyncStream(SyncStreams* streams);
  void OnAccepted(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  void OnFinished(bool ok);
  void OnEnded(bool ok);

  // Attaches the session of the first message; false: the stream has ended.
  bool Begin(absl::Time now);
  void Replaced();
  void Ack();
  void WriteNext();
  void Finish(const grpc::Status& status);
  void Leave();
  void OperationBegins() { ++operations_; }

  SyncStreams* const streams_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<v1beta1::SyncResponse, v1beta1::SyncRequest> stream_;
  StreamStep<SyncStream, &SyncStream::OnAccepted> accepted_{this};
  StreamStep<SyncStream, &SyncStream::OnRead> read_{this};
  StreamStep<SyncStream, &SyncStream::OnWritten> written_{this};
  StreamStep<SyncStream, &SyncStream::OnFinished> finished_{this};
  StreamStep<SyncStream, &SyncStream::OnEnded> ended_{this};
  v1beta1::SyncRequest request_;
  std::deque<v1beta1::SyncResponse> waiting_;
  std::string session_id_;
  int64_t acked_ = 0;
  bool writing_ = false;
  bool finishing_ = false;
  int operations_ = 0;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_SYNC_STREAM_H_
