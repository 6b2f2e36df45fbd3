#include "absl/synchronization/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace outboard::thread_sanitizer {
namespace {

// Everything that Outboard uses of absl::Mutex: passes with and without the replacement, and with
// it the thread sanitizer reports nothing.
TEST(MutexTest, LocksExclude) {
  absl::Mutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        absl::MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(MutexTest, AwaitSeesWhatAnUnlockChanged) {
  absl::Mutex mutex;
  bool ready = false;
  int value = 0;
  std::thread other([&] {
    absl::MutexLock lock(&mutex);
    value = 7;
    ready = true;
  });
  {
    absl::MutexLock lock(&mutex, absl::Condition(&ready));
    EXPECT_EQ(value, 7);
    ready = false;
    EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&ready), absl::Milliseconds(5)));
    EXPECT_FALSE(mutex.AwaitWithDeadline(absl::Condition(&ready), absl::InfinitePast()));
  }
  other.join();
}

TEST(MutexTest, AwaitOnBothSides) {
  absl::Mutex mutex;
  int turn = 0;
  auto play = [&](int me) {
    for (int i = 0; i < 200; ++i) {
      auto mine = [&turn, me] { return turn % 2 == me; };
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&mine));
      ++turn;
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(turn, 400);
}

TEST(MutexTest, CondVarsAndNotifications) {
  absl::Mutex mutex;
  absl::CondVar changed;
  absl::Notification done;
  bool ready = false;
  int value = 0;
  std::thread other([&] {
    {
      absl::MutexLock lock(&mutex);
      ready = true;
      changed.SignalAll();
    }
    value = 3;
    done.Notify();
  });
  {
    absl::MutexLock lock(&mutex);
    while (!ready) changed.Wait(&mutex);
    EXPECT_TRUE(changed.WaitWithTimeout(&mutex, absl::Milliseconds(5)));
  }
  done.WaitForNotification();
  EXPECT_EQ(value, 3);
  other.join();
}

}  // namespace
}  // namespace outboard::thread_sanitizer
