#include "shim/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"

namespace outboard::shim {
namespace {

// The scheduling thread's place to sleep.
class SignalWaiter final : public cycle::Waiter {
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

TEST(InboxTest, AnswersInTurn) {
  SignalWaiter waiter;
  Inbox inbox(&waiter);
  int posted = 0;  // the running thread's
  inbox.Post([&](absl::Time) { ++posted; });
  std::thread runner([&] {
    waiter.Wait(absl::InfiniteFuture());
    while (posted != -1) {
      inbox.Run(absl::FromUnixSeconds(7));
      if (posted != -1) waiter.Wait(absl::InfiniteFuture());
    }
  });
  const std::optional<int> answer = inbox.Ask<int>(
      [&](absl::Time now) { return posted * 10 + static_cast<int>(absl::ToUnixSeconds(now)); },
      absl::InfiniteDuration());
  EXPECT_EQ(answer, 17);
  inbox.Post([&](absl::Time) { posted = -1; });
  runner.join();
}

TEST(InboxTest, WhoAsksDoesNotWaitForNobody) {
  SignalWaiter waiter;
  Inbox inbox(&waiter);
  EXPECT_EQ(inbox.Ask<int>([](absl::Time) { return 1; }, absl::Milliseconds(1)), std::nullopt);
  // It may be answered later: nobody listens, and nothing breaks.
  EXPECT_TRUE(inbox.Run(absl::UnixEpoch()));

  absl::Notification asked;
  std::optional<int> answer = 5;
  std::thread asker([&] {
    asked.Notify();
    answer = inbox.Ask<int>([](absl::Time) { return 1; }, absl::InfiniteDuration());
  });
  asked.WaitForNotification();
  inbox.Close();
  asker.join();
  EXPECT_EQ(answer, std::nullopt);
}

}  // namespace
}  // namespace outboard::shim
