#include "shim/hosts/cycle_stream.h"

#include "shim/clock.h"

namespace outboard::hosts {
namespace {

// How long to wait for the final status of a stream that has ended.
constexpr absl::Duration kFinishDeadline = absl::Milliseconds(100);

}  // namespace

CycleStream::CycleStream(HostLoop* loop, v1beta1::CycleService::Stub* stub)
    : loop_(loop), started_(this), read_(this), written_(this), finished_(this) {
  stream_ = stub->PrepareAsyncCycle(&context_, loop->queue());
  ++operations_;
  stream_->StartCall(&started_);
}

void CycleStream::Send(const v1beta1::CycleRequest& request) {
  answered_ = false;
  operations_ += 2;
  stream_->Write(request, &written_);
  stream_->Read(&response_, &read_);
}

bool CycleStream::Exchange(const v1beta1::CycleRequest& request, absl::Time deadline,
                           v1beta1::CycleResponse* response) {
  if (!loop_->RunUntil(start_done_, deadline) || broken_) return false;
  Send(request);
  if (!loop_->RunUntil(answered_, deadline) || broken_) return false;
  // The write is done too, or its answer could not be here. Its completion must be taken before the
  // next write.
  if (!loop_->RunUntil(write_done_, deadline)) return false;
  write_done_ = false;
  response->Swap(&response_);
  return true;
}

void CycleStream::Begin(const v1beta1::CycleRequest& request) {
  under_way_ = true;
  Send(request);
}

bool CycleStream::TryTake(v1beta1::CycleResponse* response) {
  if (!answered_ || !write_done_ || broken_) return false;
  under_way_ = false;
  write_done_ = false;
  response->Swap(&response_);
  return true;
}

std::optional<grpc::Status> CycleStream::Finish() {
  ++operations_;
  stream_->Finish(&status_, &finished_);
  if (!loop_->RunUntil(finish_done_, SteadyNow() + kFinishDeadline) || status_.ok())
    return std::nullopt;
  return status_;
}

void CycleStream::Abandon() {
  abandoned_ = true;
  context_.TryCancel();
  if (operations_ == 0) delete this;
}

}  // namespace outboard::hosts
