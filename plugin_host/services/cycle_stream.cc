#include "plugin_host/services/cycle_stream.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "plugin_host/services/unary_call.h"

namespace outboard::services {

using runtime::CallStatus;
using runtime::Session;
using v1beta1::CallError;

CycleStream::CycleStream(CycleStreams* streams) : streams_(streams), stream_(&context_) {
  OperationBegins();
  streams_->service->RequestCycle(&context_, &stream_, streams_->queue, streams_->queue,
                                  accepted_.tag());
}

CycleStream::~CycleStream() {
  if (parked_) streams_->parking->Leave(this);
}

void CycleStream::OnAccepted(bool ok) {
  if (ok) {
    Listen(streams_);
    Read();
  }
  OperationEnds();
}

void CycleStream::Read() {
  OperationBegins();
  stream_.Read(&request_, read_.tag());
}

void CycleStream::OnRead(bool ok) {
  if (!ok) {
    closed_ = true;
    if (parked_) {
      streams_->parking->Leave(this);
      Unpark();
    }
    OperationBegins();
    stream_.Finish(grpc::Status::OK, finished_.tag());
    return OperationEnds();
  }
  have_request_ = true;
  const absl::Time now = absl::Now();
  give_up_ = GiveUpTime(now, now + absl::Microseconds(request_.deadline_micros()));
  // The previous answer is still being written from the same message.
  if (!writing_) AnswerOrPark();
  OperationEnds();
}

void CycleStream::AnswerOrPark() {
  if (TryAnswer(absl::Now())) return;
  // No operation may be in progress, and a waiting call must stay.
  OperationBegins();
  parked_ = true;
  streams_->parking->Park(this, session_id_, give_up_);
}

void CycleStream::Unpark() {
  parked_ = false;
  OperationEnds();
}

bool CycleStream::TryAnswer(absl::Time now) {
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

bool CycleStream::Evaluate(absl::Time now) {
  v1beta1::CallHeader* header = request_.mutable_header();
  if (!header->session_id().empty()) session_id_ = header->session_id();
  if (!header->instance().empty()) instance_ = header->instance();
  // Keeps the memory of the evaluation, which Clear would free.
  response_.set_attempt_id(header->attempt_id());
  CallStatus status;
  Session* session = nullptr;
  if (instance_ != streams_->host->identity().instance) {
    status = CallStatus(CallError::REASON_WRONG_INSTANCE, "another instance listens here");
  } else if (session = streams_->host->FindSession(session_id_); session == nullptr) {
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
        status = session->Cycle(request_, now, &response_);
        break;
    }
  }
  if (!status.ok()) *response_.mutable_error() = status.ToProto();
  const int64_t micros = absl::ToInt64Microseconds(absl::Now() - now);
  response_.set_evaluation_micros(std::max<int64_t>(micros, 0));
  return true;
}

void CycleStream::OnWritten(bool ok) {
  writing_ = false;
  if (have_request_ && ok && !closed_) AnswerOrPark();
  OperationEnds();
}

void CycleStream::OnFinished(bool) { OperationEnds(); }

void CycleStream::OperationEnds() {
  if (--operations_ == 0) delete this;
}

}  // namespace outboard::services
