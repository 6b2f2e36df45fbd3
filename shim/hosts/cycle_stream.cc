#include "shim/hosts/cycle_stream.h"

#include "shim/clock.h"

namespace outboard::hosts {
namespace {

// How long to wait for the final status of a stream that has ended.
constexpr absl::Duration kFinishDeadline = absl::Milliseconds(100);

// The answer of a Cycle stream as one of a Plan stream. Takes the parts of `cycle`.
void ToPlan(v1beta1::CycleResponse* cycle, v1beta1::PlanResponse* plan) {
  plan->Clear();
  plan->set_attempt_id(cycle->attempt_id());
  plan->set_evaluation_micros(cycle->evaluation_micros());
  switch (cycle->outcome_case()) {
    case v1beta1::CycleResponse::kError:
      plan->set_allocated_error(cycle->release_error());
      break;
    case v1beta1::CycleResponse::kRejection:
      plan->mutable_rejection()->set_allocated_pre_filter(
          cycle->mutable_rejection()->release_pre_filter());
      break;
    case v1beta1::CycleResponse::kEvaluation:
      plan->set_allocated_evaluation(cycle->release_evaluation());
      break;
    case v1beta1::CycleResponse::OUTCOME_NOT_SET:
      break;
  }
}

}  // namespace

CycleStream::CycleStream(HostLoop* loop, v1beta1::CycleService::Stub* stub) : CycleStream(loop) {
  cycle_ = stub->PrepareAsyncCycle(&context_, loop->queue());
  ++operations_;
  cycle_->StartCall(&started_);
}

CycleStream::CycleStream(HostLoop* loop, v1beta1::PlanService::Stub* stub) : CycleStream(loop) {
  plan_ = stub->PrepareAsyncPlan(&context_, loop->queue());
  ++operations_;
  plan_->StartCall(&started_);
}

void CycleStream::Send(const v1beta1::PlanRequest& request) {
  answered_ = false;
  operations_ += 2;
  if (plan_ != nullptr) {
    plan_->Write(request, &written_);
    plan_->Read(&plan_response_, &read_);
  } else {
    cycle_->Write(request.cycle(), &written_);
    cycle_->Read(&cycle_response_, &read_);
  }
}

void CycleStream::Take(v1beta1::PlanResponse* response) {
  write_done_ = false;
  if (plan_ != nullptr) {
    response->Swap(&plan_response_);
  } else {
    ToPlan(&cycle_response_, response);
  }
}

bool CycleStream::Exchange(const v1beta1::PlanRequest& request, absl::Time deadline,
                           v1beta1::PlanResponse* response) {
  if (!loop_->RunUntil(start_done_, deadline) || broken_) return false;
  Send(request);
  if (!loop_->RunUntil(answered_, deadline) || broken_) return false;
  // The write is done too, or its answer could not be here. Its completion must be taken before the
  // next write.
  if (!loop_->RunUntil(write_done_, deadline)) return false;
  Take(response);
  return true;
}

void CycleStream::Begin(const v1beta1::PlanRequest& request) {
  under_way_ = true;
  Send(request);
}

bool CycleStream::TryTake(v1beta1::PlanResponse* response) {
  if (!answered_ || !write_done_ || broken_) return false;
  under_way_ = false;
  Take(response);
  return true;
}

std::optional<grpc::Status> CycleStream::Finish() {
  ++operations_;
  if (plan_ != nullptr) {
    plan_->Finish(&status_, &finished_);
  } else {
    cycle_->Finish(&status_, &finished_);
  }
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
