#include "shim/hosts/host_loop.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <chrono>

#include "shim/clock.h"

namespace outboard::hosts {
namespace {

gpr_timespec ToGprDeadline(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  // Monotonic, so that setting the clock does not lengthen or shorten a wait.
  const int64_t nanos = std::min<int64_t>(absl::ToInt64Nanoseconds(deadline - SteadyNow()),
                                          int64_t{86400} * 1000000000);
  // gRPC rounds up to milliseconds, so "now" would wait for one.
  if (nanos <= 0) return gpr_time_0(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(nanos, GPR_TIMESPAN));
}

}  // namespace

// An alarm that fires at once: gRPC's way to wake a poller from another thread. Deletes itself.
class HostLoop::WakeUp final : public Completion {
 public:
  explicit WakeUp(HostLoop* loop) : loop_(loop) {}
  // At a past time: gRPC rounds up to milliseconds, so "now" would fire a millisecond late, and
  // through its timer thread.
  void Start() { alarm_.Set(loop_->queue(), gpr_time_0(GPR_CLOCK_MONOTONIC), this); }
  void OnDone(bool) override {
    loop_->wake_up_in_flight_.store(false);
    delete this;
  }

 private:
  HostLoop* const loop_;
  grpc::Alarm alarm_;
};

HostLoop::HostLoop() = default;

HostLoop::~HostLoop() {
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) static_cast<Completion*>(tag)->OnDone(ok);
}

bool HostLoop::RunOne(absl::Time deadline) {
  void* tag;
  bool ok;
  if (queue_.AsyncNext(&tag, &ok, ToGprDeadline(deadline)) != grpc::CompletionQueue::GOT_EVENT) {
    return false;
  }
  static_cast<Completion*>(tag)->OnDone(ok);
  return true;
}

bool HostLoop::RunUntil(const bool& done, absl::Time deadline) {
  while (!done) {
    if (!RunOne(deadline)) return done;
    // A poll with a past deadline still returns what has completed.
    if (deadline != absl::InfiniteFuture() && SteadyNow() >= deadline) return done;
  }
  return true;
}

void HostLoop::RunReady() {
  for (int i = 0; i < kMostPerTurn && RunOne(absl::InfinitePast()); ++i) {
  }
}

void HostLoop::Wait(absl::Time deadline) {
  waiting_.store(true);
  if (!woken_.exchange(false)) {
    RunOne(deadline);
    RunReady();
    woken_.store(false);
  }
  waiting_.store(false);
}

void HostLoop::Wake() {
  woken_.store(true);
  if (waiting_.load() && !wake_up_in_flight_.exchange(true)) (new WakeUp(this))->Start();
}

}  // namespace outboard::hosts
