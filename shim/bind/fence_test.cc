#include "shim/bind/fence.h"

#include <gtest/gtest.h>

namespace outboard::bind {
namespace {

constexpr absl::Duration kLeft = absl::Seconds(10);  // of the lease, when the check begins

// A machine with both clocks. Something happens to it before its nth reading of a clock.
struct Machine {
  absl::Time boot = absl::FromUnixSeconds(500);
  absl::Time wall = absl::FromUnixSeconds(1700000000);
  int readings = 0;
  int stops_before = -1;
  absl::Duration stop;
  int steps_before = -1;
  absl::Duration step;

  absl::Time Read(const absl::Time* clock) {
    if (readings == stops_before) {
      boot += stop;
      wall += stop;
    }
    if (readings == steps_before) wall += step;
    ++readings;
    return *clock;
  }
};

// The lease's deadline is published on the boot clock. Whatever happens between two readings, a
// write is allowed only if the lease still lasted at the last one.
TEST(Fence, IsNeverLate) {
  for (int stops_before = -1; stops_before < 2; ++stops_before) {
    for (int steps_before = -1; steps_before < 2; ++steps_before) {
      for (absl::Duration stop : {absl::Seconds(9), kLeft, absl::Seconds(20), absl::Hours(2)}) {
        for (absl::Duration step : {-absl::Hours(1), absl::Hours(1)}) {
          Machine machine;
          machine.stops_before = stops_before;
          machine.stop = stop;
          machine.steps_before = steps_before;
          machine.step = step;
          const absl::Time lease = machine.boot + kLeft;
          Fence fence;
          fence.deadline = [&] {
            machine.Read(&machine.boot);
            return lease;
          };
          fence.clock = [&] { return machine.Read(&machine.boot); };
          const bool passed = fence.Passed();
          EXPECT_EQ(passed, machine.boot >= lease)
              << "stop " << stop << " before reading " << stops_before << ", step " << step
              << " before reading " << steps_before;
          EXPECT_EQ(machine.readings, 2);
        }
      }
    }
  }
}

TEST(Fence, ComparesOnTheLeasesClock) {
  Fence fence;
  EXPECT_FALSE(fence.Passed());  // without leader election
  absl::Time lease = SteadyNow() + absl::Hours(1);
  fence.deadline = [&lease] { return lease; };
  EXPECT_FALSE(fence.Passed());
  lease = SteadyNow();
  EXPECT_TRUE(fence.Passed());
  lease = absl::InfinitePast();  // not leading
  EXPECT_TRUE(fence.Passed());
}

}  // namespace
}  // namespace outboard::bind
