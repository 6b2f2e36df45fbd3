#include "plugin_host/services/cycle_stream.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "plugin_host/services/unary_call.h"

namespace outboard::services {

using runtime::CallStatus;
using runtime::Session;
using v1beta1::CallError;

template <typename Rpc>
CycleStream<Rpc>::CycleStream(CycleStreams<Rpc>* streams) : streams_(streams), stream_(&context_) {
  OperationBegins();
  (streams_->service->*Rpc::kAccept)(&context_, &stream_, streams_->queue, streams_->queue,
                                     accepted_.tag());
}

template <typename Rpc>
CycleStream<Rpc>::~CycleStream() {
  if (parked_) streams_->parking->Leave(this);
}

template <typename Rpc>
void CycleStream<Rpc>::OnAccepted(bool ok) {
  if (ok) {
    Listen(streams_);
    Read();
  }
  OperationEnds();
}

template <typename Rpc>
void CycleStream<Rpc>::Read() {
  OperationBegins();
  stream_.Read(&request_, read_.tag());
}

template <typename Rpc>
void CycleStream<Rpc>::OnRead(bool ok) {
  if (!ok) {
    closed_ = true;
    if (parked_) {
      streams_->parking->Leave(this);
      parked_ = false;
      --operations_;  // The waiting call; the read counts still, so the stream stays.
    }
    OperationBegins();
    stream_.Finish(grpc::Status::OK, finished_.tag());
    return OperationEnds();
  }
  have_request_ = true;
  const absl::Time now = absl::Now();
  give_up_ = GiveUpTime(now, now + absl::Microseconds(Rpc::CycleOf(request_).deadline_micros()));
  // The previous answer is still being written from the same message.
  if (!writing_) AnswerOrPark();
  OperationEnds();
}

template <typename Rpc>
void CycleStream<Rpc>::AnswerOrPark() {
  if (TryAnswer(absl::Now())) return;
  // No operation may be in progress, and a waiting call must stay.
  OperationBegins();
  parked_ = true;
  streams_->parking->Park(this, session_id_, give_up_);
}

template <typename Rpc>
void CycleStream<Rpc>::Unpark() {
  parked_ = false;
  OperationEnds();
}

template <typename Rpc>
bool CycleStream<Rpc>::TryAnswer(absl::Time now) {
  if (closed_) return true;
  if (!Evaluate(now)) return false;
  have_request_ = false;
  writing_ = true;
  OperationBegins();
  stream_.Write(response_, written_.tag());
  Read();
  if (parked_) Unpark();
  return true;
}

template <typename Rpc>
bool CycleStream<Rpc>::Evaluate(absl::Time now) {
  v1beta1::CallHeader* header = Rpc::CycleOf(request_).mutable_header();
  if (!header->session_id().empty()) session_id_ = header->session_id();
  // Keeps the memory of the evaluation, which Clear would free.
  response_.set_attempt_id(header->attempt_id());
  CallStatus status;
  Session* const session = streams_->host->FindSession(session_id_);
  if (session == nullptr) {
    status = CallStatus(CallError::REASON_SESSION_UNKNOWN, session_id_);
  } else {
    switch (session->Reached(*header)) {
      case Session::Readiness::kNotYet:
        if (now < give_up_) return false;
        status = CallStatus::Stale(session->version());
        break;
      case Session::Readiness::kPast:
        status = CallStatus::Stale(session->version());
        break;
      case Session::Readiness::kReady:
        status = (session->*Rpc::kAnswer)(request_, now, &response_);
        break;
    }
  }
  if (!status.ok()) *response_.mutable_error() = status.ToProto();
  const int64_t micros = absl::ToInt64Microseconds(absl::Now() - now);
  response_.set_evaluation_micros(std::max<int64_t>(micros, 0));
  return true;
}

template <typename Rpc>
void CycleStream<Rpc>::OnWritten(bool ok) {
  writing_ = false;
  if (have_request_ && ok && !closed_) AnswerOrPark();
  OperationEnds();
}

template <typename Rpc>
void CycleStream<Rpc>::OnFinished(bool) {
  OperationEnds();
}

template <typename Rpc>
void CycleStream<Rpc>::OperationEnds() {
  if (--operations_ == 0) delete this;
}

template class CycleStream<CycleRpc>;
template class CycleStream<PlanRpc>;

}  // namespace outboard::services
