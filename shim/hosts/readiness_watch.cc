#include "shim/hosts/readiness_watch.h"

#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace outboard::hosts {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(1);
constexpr absl::Duration kUntilReady = absl::Milliseconds(100);
constexpr absl::Duration kOnceReady = absl::Seconds(1);

}  // namespace

ReadinessWatch::ReadinessWatch(HostLoop* loop, const std::shared_ptr<grpc::Channel>& channel,
                               v1beta1::ProbeRequest request, std::string instance,
                               std::function<void()> on_lost)
    : loop_(loop),
      stub_(v1beta1::PluginHostService::NewStub(channel)),
      request_(std::move(request)),
      instance_(std::move(instance)),
      on_lost_(std::move(on_lost)),
      probed_(this),
      woken_(this) {
  StartProbe();
}

void ReadinessWatch::Abandon() {
  abandoned_ = true;
  ready_ = false;
  if (!under_way_) {
    delete this;
    return;
  }
  if (context_ != nullptr) context_->TryCancel();
  alarm_.Cancel();
}

void ReadinessWatch::StartProbe() {
  under_way_ = true;
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
  response_.Clear();
  reader_ = stub_->PrepareAsyncProbe(context_.get(), request_, loop_->queue());
  reader_->StartCall();
  reader_->Finish(&response_, &status_, &probed_);
}

void ReadinessWatch::OnProbed(bool) {
  under_way_ = false;
  if (abandoned_) {
    delete this;
    return;
  }
  const bool is_gone = status_.error_code() == grpc::StatusCode::UNAVAILABLE ||
                       (status_.ok() && response_.instance() != instance_);
  if (is_gone) {
    ready_ = false;
    on_lost_();
    return;
  }
  if (status_.ok()) ready_ = response_.state() == v1beta1::ProbeResponse::STATE_READY;
  under_way_ = true;
  alarm_.Set(loop_->queue(), absl::ToChronoTime(absl::Now() + (ready_ ? kOnceReady : kUntilReady)),
             &woken_);
}

void ReadinessWatch::OnAlarm(bool) {
  under_way_ = false;
  if (abandoned_) {
    delete this;
    return;
  }
  StartProbe();
}

}  // namespace outboard::hosts
