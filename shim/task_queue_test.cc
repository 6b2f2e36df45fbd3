#include "shim/task_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"

namespace outboard::shim {
namespace {

// A Waiter that blocks on a condition variable.
class SignalWaiter final : public framework::Waiter {
 public:
  void Wait(absl::Time until) override {
    absl::MutexLock lock(&mu_);
    mu_.AwaitWithDeadline(absl::Condition(&woken_), until);
    woken_ = false;
  }
  void Wake() override {
    absl::MutexLock lock(&mu_);
    woken_ = true;
  }

 private:
  absl::Mutex mu_;
  bool woken_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(TaskQueueTest, AnswersInTurn) {
  SignalWaiter waiter;
  TaskQueue task_queue(&waiter);
  int posted = 0;  // used by the running thread only
  task_queue.Post([&](absl::Time) { ++posted; });
  std::thread runner([&] {
    waiter.Wait(absl::InfiniteFuture());
    while (posted != -1) {
      task_queue.Run(absl::FromUnixSeconds(7));
      if (posted != -1) waiter.Wait(absl::InfiniteFuture());
    }
  });
  const std::optional<int> answer = task_queue.Ask<int>(
      [&](absl::Time now) { return posted * 10 + static_cast<int>(absl::ToUnixSeconds(now)); },
      absl::InfiniteDuration());
  EXPECT_EQ(answer, 17);
  task_queue.Post([&](absl::Time) { posted = -1; });
  runner.join();
}

TEST(TaskQueueTest, AskReturnsWithoutASchedulingThread) {
  SignalWaiter waiter;
  TaskQueue task_queue(&waiter);
  EXPECT_EQ(task_queue.Ask<int>([](absl::Time) { return 1; }, absl::Milliseconds(1)), std::nullopt);
  // The task may still run later: the answer is dropped without harm.
  EXPECT_TRUE(task_queue.Run(absl::UnixEpoch()));

  absl::Notification asked;
  std::optional<int> answer = 5;
  std::thread asker([&] {
    asked.Notify();
    answer = task_queue.Ask<int>([](absl::Time) { return 1; }, absl::InfiniteDuration());
  });
  asked.WaitForNotification();
  task_queue.Close();
  asker.join();
  EXPECT_EQ(answer, std::nullopt);
}

}  // namespace
}  // namespace outboard::shim
