#include "shim/hosts/host_loop.h"

#include <grpcpp/alarm.h>
#include <gtest/gtest.h>

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
  // The scheduling thread looks several times a pod.
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

}  // namespace
}  // namespace outboard::hosts
