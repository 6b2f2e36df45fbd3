#include "shim/hosts/host_loop.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/time/clock.h"

namespace outboard::hosts {
namespace {

struct Noted final : Completion {
  void OnDone(bool) override { done = true; }
  bool done = false;
};

TEST(HostLoopTest, LookingForWhatIsReadyTakesNoTime) {
  HostLoop loop;
  loop.RunReady();
  // The scheduling thread checks several times per pod.
  constexpr int kLooks = 1000;
  const absl::Time began = absl::Now();
  for (int i = 0; i < kLooks; ++i) loop.RunReady();
  EXPECT_LT(absl::Now() - began, kLooks * absl::Microseconds(300));
}

TEST(HostLoopTest, WaitsUntilADeadlineAndNoLongerThanForAnEvent) {
  HostLoop loop;
  absl::Time began = absl::Now();
  loop.Wait(began + absl::Milliseconds(30));
  EXPECT_GE(absl::Now() - began, absl::Milliseconds(29));
  Noted noted;
  grpc::Alarm alarm;
  began = absl::Now();
  alarm.Set(loop.queue(), absl::ToChronoTime(began + absl::Milliseconds(10)), &noted);
  EXPECT_TRUE(loop.RunUntil(noted.done, began + absl::Seconds(30)));
  EXPECT_LT(absl::Now() - began, absl::Seconds(20));
}

TEST(HostLoopTest, AnotherThreadWakesItAtOnce) {
  HostLoop loop;
  constexpr int kTimes = 200;
  std::atomic<int64_t> woken_at{0};  // nanoseconds; 0: the last one was taken
  std::thread waker([&] {
    for (int i = 0; i < kTimes; ++i) {
      while (woken_at != 0) std::this_thread::yield();
      absl::SleepFor(absl::Milliseconds(1));  // By then it usually waits.
      woken_at = absl::GetCurrentTimeNanos();
      loop.Wake();
    }
  });
  std::vector<absl::Duration> took;
  while (took.size() < kTimes) {
    loop.Wait(absl::Now() + absl::Seconds(30));
    if (const int64_t at = woken_at; at != 0) {
      took.push_back(absl::Nanoseconds(absl::GetCurrentTimeNanos() - at));
      woken_at = 0;
    }
  }
  waker.join();
  // Others may use the machine; but if it were rounded to milliseconds, hardly any would be as
  // quick.
  absl::c_sort(took);
  EXPECT_LT(took[kTimes / 4], absl::Microseconds(200)) << "the middle one: " << took[kTimes / 2];
}

}  // namespace
}  // namespace outboard::hosts
