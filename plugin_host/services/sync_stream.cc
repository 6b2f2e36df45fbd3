#include "plugin_host/services/sync_stream.h"

#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "glog/logging.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::services {
namespace {

using v1beta1::CallError;

// A peer that does not read its pushes is disconnected at this many.
constexpr size_t kMaxWaitingPushes = 65536;

}  // namespace

SyncStream::SyncStream(SyncStreams* streams) : streams_(streams), stream_(&context_) {
  // The end tag comes only if the call was accepted, so it is counted then.
  context_.AsyncNotifyWhenDone(ended_.tag());
  OperationBegins();
  streams_->service->RequestSync(&context_, &stream_, streams_->queue, streams_->queue,
                                 accepted_.tag());
}

void SyncStream::OnAccepted(bool ok) {
  if (!ok) return OperationEnds();
  Listen(streams_);
  OperationBegins();  // ended_
  OperationBegins();
  stream_.Read(&request_, read_.tag());
  OperationEnds();
}

bool SyncStream::Begin(absl::Time now) {
  if (request_.session_id().empty()) {
    Finish(call_errors::ToGrpcStatus(
        runtime::CallStatus(CallError::REASON_INVALID, "the first message must name the session")
            .ToProto()));
    return false;
  }
  runtime::Session* session = streams_->host->FindSession(request_.session_id());
  if (session == nullptr) {
    Finish(call_errors::ToGrpcStatus(
        runtime::CallStatus(CallError::REASON_SESSION_UNKNOWN, "configure the session first")
            .ToProto()));
    return false;
  }
  session_id_ = request_.session_id();
  auto old = streams_->by_session.find(session_id_);
  if (old != streams_->by_session.end()) old->second->Replaced();
  streams_->by_session[session_id_] = this;
  streams_->host->Connected(session_id_);
  session->BeginSync();
  session->SetPush([this](const v1beta1::SyncResponse& response) { Push(response); });
  LOG(INFO) << "Sync stream of session " << session_id_ << " opened";
  return true;
}

void SyncStream::Replaced() {
  session_id_.clear();  // The session now belongs to the other stream.
  Finish(
      grpc::Status(grpc::StatusCode::CANCELLED, "another stream of the session replaces this one"));
  context_.TryCancel();
}

void SyncStream::OnRead(bool ok) {
  if (!ok) {  // The client closed its side, or disconnected.
    Leave();
    Finish(grpc::Status::OK);
    return OperationEnds();
  }
  if (finishing_) return OperationEnds();
  const absl::Time now = absl::Now();
  if (session_id_.empty() && !Begin(now)) return OperationEnds();
  runtime::Session* session = streams_->host->FindSession(session_id_);
  absl::Status status = session == nullptr ? absl::NotFoundError("the session is gone")
                                           : session->Apply(request_, now);
  if (!status.ok()) {
    LOG(WARNING) << "Sync message of session " << session_id_
                 << " rejected; ending the stream: " << status.message();
    Leave();
    const runtime::CallStatus error(CallError::REASON_INVALID, std::string(status.message()));
    Finish(call_errors::ToGrpcStatus(error.ToProto(), grpc::StatusCode::FAILED_PRECONDITION));
    return OperationEnds();
  }
  if (request_.phase() == v1beta1::SyncRequest::PHASE_SNAPSHOT_END) {
    LOG(INFO) << "Snapshot of session " << session_id_ << " complete at version "
              << session->version() << " with " << session->cache().view().node_order().size()
              << " nodes and " << session->cache().view().pods().size() << " pods";
    Ack();
  } else if (request_.time_unix_micros() != 0) {
    Ack();  // A shim that sets the time waits for the results.
  }
  const std::string session_id = session_id_;
  OperationBegins();
  stream_.Read(&request_, read_.tag());
  // After posting the read, because answering waiting calls may take a while.
  streams_->parking->Retry(session_id, now);
  OperationEnds();
}

void SyncStream::Ack() {
  const runtime::Session* session = streams_->host->FindSession(session_id_);
  if (session == nullptr || session->version() == 0) return;
  acked_ = session->version();
  v1beta1::SyncResponse response;
  response.mutable_ack()->set_version(acked_);
  if (const std::optional<absl::Time> told = session->clock_advanced_to(); told.has_value())
    response.mutable_ack()->set_time_unix_micros(absl::ToUnixMicros(*told));
  Push(std::move(response));
}

void SyncStream::AckIfBehind() {
  const runtime::Session* session = streams_->host->FindSession(session_id_);
  if (session != nullptr && session->version() > acked_) Ack();
}

void SyncStream::Push(v1beta1::SyncResponse response) {
  if (finishing_) return;
  if (waiting_.size() >= kMaxWaitingPushes) {
    LOG(WARNING) << "Shim of session " << session_id_
                 << " does not read pushes; ending the Sync stream";
    return context_.TryCancel();
  }
  waiting_.push_back(std::move(response));
  WriteNext();
}

void SyncStream::WriteNext() {
  if (writing_ || finishing_ || waiting_.empty()) return;
  writing_ = true;
  OperationBegins();
  stream_.Write(waiting_.front(), written_.tag());
}

void SyncStream::OnWritten(bool ok) {
  writing_ = false;
  waiting_.pop_front();
  if (ok) WriteNext();
  OperationEnds();
}

void SyncStream::Leave() {
  if (session_id_.empty()) return;
  auto it = streams_->by_session.find(session_id_);
  if (it != streams_->by_session.end() && it->second == this) {
    streams_->by_session.erase(it);
    streams_->host->Disconnected(session_id_, absl::Now());
    LOG(INFO) << "Sync stream of session " << session_id_ << " closed";
  }
  session_id_.clear();
}

void SyncStream::Finish(const grpc::Status& status) {
  if (finishing_) return;
  finishing_ = true;
  OperationBegins();
  stream_.Finish(status, finished_.tag());
}

void SyncStream::OnFinished(bool) { OperationEnds(); }

void SyncStream::OnEnded(bool) {
  Leave();
  OperationEnds();
}

void SyncStream::OperationEnds() {
  if (--operations_ == 0) delete this;
}

}  // namespace outboard::services
