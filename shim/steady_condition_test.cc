#include "shim/steady_condition.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/time/clock.h"
#include "shim/clock.h"

namespace outboard {
namespace {

TEST(SteadyNow, IsNotMistakenForAWallTime) {
  const absl::Time first = SteadyNow();
  EXPECT_LE(first, SteadyNow());
  EXPECT_GT(first - absl::Now(), absl::Hours(24 * 365 * 10));
}

TEST(SteadyCondition, WaitsForTheChangeOrTheTimeout) {
  absl::Mutex mutex;
  SteadyCondition changed;
  bool reached = false;
  const auto is_reached = [&reached] { return reached; };
  {
    absl::MutexLock lock(&mutex);
    for (absl::Duration timeout :
         {-absl::Hours(1), absl::ZeroDuration(), -absl::InfiniteDuration()})
      EXPECT_FALSE(changed.AwaitFor(mutex, timeout, is_reached));
    const absl::Time began = SteadyNow();
    EXPECT_FALSE(changed.AwaitFor(mutex, absl::Milliseconds(50), is_reached));
    EXPECT_GE(SteadyNow() - began, absl::Milliseconds(50));
  }
  for (absl::Duration timeout : {absl::Hours(1), absl::InfiniteDuration()}) {
    reached = false;
    std::thread changer([&] {
      absl::MutexLock lock(&mutex);
      reached = true;
      changed.Notify();
    });
    {
      absl::MutexLock lock(&mutex);
      EXPECT_TRUE(changed.AwaitFor(mutex, timeout, is_reached));
      mutex.AssertHeld();
    }
    changer.join();
  }
}

}  // namespace
}  // namespace outboard
