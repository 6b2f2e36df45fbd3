#include "maintenance_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "windows.h"

namespace maintenance_window {
namespace {

using outboard::sdk::testing::NodeBuilder;
using outboard::sdk::testing::PluginHarness;
using outboard::sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Time At(const std::string& text) {
  absl::Time time;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) << text;
  return time;
}

TEST(MaintenanceWindowTest, Cases) { outboard::sdk::testing::RunCases(Descriptor(), TESTDATA); }

TEST(MaintenanceWindowTest, InvalidWindows) {
  for (const char* text :
       {"Sat", "Sat 1:00-3:00", "Sat 01:00-01:00", "Sat 24:00-01:00", "Sam 01:00-02:00",
        "2026-11-21T02:00:00Z/2026-11-21T01:00:00Z", "2026-11-21/2026-11-22"}) {
    EXPECT_FALSE(ParseWindows(text).has_value()) << text;
  }
  EXPECT_THAT(*ParseWindows(""), IsEmpty());
}

// Compares every minute of two weeks with the calendar.
TEST(MaintenanceWindowTest, WeeklyWindowsOnTheCalendar) {
  const Window window = ParseWindows("Sat 23:00-01:00")->front();
  const absl::Time begin = At("2026-11-18T00:00:00Z");
  for (int minute = 0; minute < 14 * 24 * 60; ++minute) {
    const absl::Time now = begin + absl::Minutes(minute);
    const absl::CivilHour hour = absl::ToCivilHour(now, absl::UTCTimeZone());
    const absl::Weekday day = absl::GetWeekday(hour);
    const bool expected = (day == absl::Weekday::saturday && hour.hour() == 23) ||
                          (day == absl::Weekday::sunday && hour.hour() == 0);
    ASSERT_EQ(window.Covers(now, absl::ZeroDuration()), expected) << now;
  }
}

TEST(MaintenanceWindowTest, PodsAreTriedAgainWhenAWindowEnds) {
  auto harness = PluginHarness::Create(Descriptor());
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("n").Annotation("outboard.dev/maintenance", "Sat 01:00-03:00"));
  (*harness)->SetNow(At("2026-11-21T02:59:59Z"));
  EXPECT_TRUE((*harness)->Filter(PodBuilder("p"))["n"].rejected());
  (*harness)->Tick();
  EXPECT_THAT((*harness)->TakeActivated(), IsEmpty());
  (*harness)->SetNow(At("2026-11-21T03:00:00Z"));
  (*harness)->Tick();
  EXPECT_THAT((*harness)->TakeActivated(), ElementsAre("default/p"));
  (*harness)->Tick();
  EXPECT_THAT((*harness)->TakeActivated(), IsEmpty());
}

TEST(MaintenanceWindowTest, TheFirstTickEndsNoWindow) {
  auto harness = PluginHarness::Create(Descriptor());
  ASSERT_TRUE(harness.ok()) << harness.status();
  (*harness)->AddNode(NodeBuilder("n").Annotation("outboard.dev/maintenance", "Sat 01:00-03:00"));
  (*harness)->SetNow(At("2026-11-21T04:00:00Z"));
  (*harness)->Filter(PodBuilder("p"));
  (*harness)->Tick();
  EXPECT_THAT((*harness)->TakeActivated(), IsEmpty());
}

}  // namespace
}  // namespace maintenance_window
