#include "shim/bind/event_rate_limit.h"

#include <gtest/gtest.h>

namespace outboard::bind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

int Taken(EventRateLimit* limit, const std::string& plugin, absl::Time now) {
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += limit->Take(plugin, now);
  return taken;
}

TEST(EventRateLimit, AllowsABurstAndThenTenASecond) {
  EventRateLimit limit;
  EXPECT_EQ(Taken(&limit, "A", kStart), 100);
  EXPECT_EQ(Taken(&limit, "A", kStart + absl::Seconds(1)), 10);
  EXPECT_EQ(Taken(&limit, "A", kStart + absl::Milliseconds(1500)), 5);
  EXPECT_EQ(Taken(&limit, "A", kStart + absl::Hours(1)), 100) << "unused events do not add up";
}

TEST(EventRateLimit, EachPluginHasItsOwn) {
  EventRateLimit limit;
  EXPECT_EQ(Taken(&limit, "A", kStart), 100);
  EXPECT_EQ(Taken(&limit, "B", kStart), 100);
}

}  // namespace
}  // namespace outboard::bind
