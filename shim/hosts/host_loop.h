// The completion queue that the scheduling thread polls for all hosts.
#ifndef OUTBOARD_SHIM_HOSTS_HOST_LOOP_H_
#define OUTBOARD_SHIM_HOSTS_HOST_LOOP_H_

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <functional>

#include "absl/time/time.h"
#include "shim/framework/waiter.h"

namespace outboard::hosts {

// One operation in flight on the loop's completion queue. The object must live until OnDone was
// called.
class Completion {
 public:
  virtual ~Completion() = default;
  // `ok` as gRPC defines it for the operation. Called on the scheduling thread.
  virtual void OnDone(bool ok) = 0;
};

// Owns the completion queue and polls it on the scheduling thread: no gRPC thread ever runs our
// code, and a call costs one sleep and one wake-up. The idle scheduling thread waits on the same
// queue, so that pushes of hosts are seen at once.
//
// Threading: the scheduling thread, except Wake.
// Lifetime: outlives all clients made on it; the destructor drains the queue.
class HostLoop final : public framework::Waiter {
 public:
  HostLoop();
  ~HostLoop() override;
  HostLoop(const HostLoop&) = delete;
  HostLoop& operator=(const HostLoop&) = delete;

  static constexpr int kMostPerTurn = 1000;

  grpc::CompletionQueue* queue() { return &queue_; }

  // Runs completions until `done` holds; false at `deadline`, even while more keep coming.
  bool RunUntil(const bool& done, absl::Time deadline);
  // Runs what has already completed, without waiting; at most kMostPerTurn, because a peer may
  // cause completions faster than they are run.
  void RunReady();

  void Wait(absl::Time deadline) override;
  void Wake() override;

 private:
  class WakeUp;

  // Runs one completion; false at `deadline`.
  bool RunOne(absl::Time deadline);

  grpc::CompletionQueue queue_;
  // Dekker's flags: a waker that sees `waiting_` false has set `woken_` before the sleeper reads
  // it.
  std::atomic<bool> waiting_{false};
  std::atomic<bool> woken_{false};
  std::atomic<bool> wake_up_in_flight_{false};
};

}  // namespace outboard::hosts

#endif  // OUTBOARD_SHIM_HOSTS_HOST_LOOP_H_
