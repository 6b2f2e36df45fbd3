#include "plugins/cost_optimized/cheap_hours.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace outboard::cost_optimized {
namespace {

absl::Time At(const std::string& text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error)) << text << ": " << error;
  return time;
}

CheapHours Read(const std::string& windows) {
  sdk::ArgsReader reader("{\"windows\": " + windows + "}");
  CheapHours hours = CheapHours::Read(reader.root());
  for (const sdk::ArgsProblem& problem : reader.Finish())
    ADD_FAILURE() << problem.field << ": " << problem.message;
  return hours;
}

std::string Next(const CheapHours& hours, const std::string& now) {
  const std::optional<absl::Time> next = hours.NextCheap(At(now));
  return next ? absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", *next, absl::UTCTimeZone()) : "never";
}

TEST(CheapHours, DaysAreThoseOfCron) {
  EXPECT_EQ(ParseDays("*"), 0b1111111);
  EXPECT_EQ(ParseDays("Mon-Fri"), 0b0111110);
  EXPECT_EQ(ParseDays("1-5"), 0b0111110);
  EXPECT_EQ(ParseDays("sat,SUN"), 0b1000001);
  EXPECT_EQ(ParseDays("6, 7"), 0b1000001);
  EXPECT_EQ(ParseDays("Fri-Mon"), 0b1100011);
  EXPECT_EQ(ParseDays("0"), 0b0000001);
  EXPECT_EQ(ParseDays("0-7"), 0b1111111);
  EXPECT_EQ(ParseDays("Wed-Wed"), 0b0001000);
  EXPECT_EQ(ParseDays("Mon,Wed-Thu"), 0b0011010);
  for (const char* text : {"", ",", "8", "-1", "Mon-", "Mon-Tue-Wed", "Monday", "*,Mon", "1.5",
                           "montag", "ſun", "99999999999999999999"}) {
    EXPECT_EQ(ParseDays(text), std::nullopt) << text;
  }
}

TEST(CheapHours, TimesOfDayHaveTwoDigitsEach) {
  EXPECT_EQ(ParseMinute("00:00"), 0);
  EXPECT_EQ(ParseMinute("22:15"), 22 * 60 + 15);
  EXPECT_EQ(ParseMinute("24:00"), 1440);
  for (const char* text : {"", "9:00", "24:01", "25:00", "12:60", "12-30", "-1:00", "12:5x",
                           "+1:00", "12:000", "noon"}) {
    EXPECT_EQ(ParseMinute(text), std::nullopt) << text;
  }
}

TEST(CheapHours, EndsAreExclusiveAndDaysAreThoseOnWhichAWindowBegins) {
  const CheapHours hours =
      Read(R"([{"days": "Fri", "from": "22:00", "to": "06:00", "factor": 0.5}])");
  EXPECT_FALSE(hours.IsCheap(At("2026-01-02T21:59:59Z")));  // Friday.
  EXPECT_TRUE(hours.IsCheap(At("2026-01-02T22:00:00Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-01-02T23:59:59Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-01-03T00:00:00Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-01-03T05:59:59Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-01-03T06:00:00Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-01-03T22:00:00Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-01-02T05:00:00Z")));  // Thursday night.
  EXPECT_EQ(Next(hours, "2026-01-01T00:00:00Z"), "2026-01-02T22:00:00Z");
  EXPECT_EQ(Next(hours, "2026-01-02T23:00:00Z"), "2026-01-02T23:00:00Z");
  EXPECT_EQ(Next(hours, "2026-01-03T06:00:00Z"), "2026-01-09T22:00:00Z");
}

TEST(CheapHours, WholeDaysEndAt24) {
  const CheapHours hours =
      Read(R"([{"days": "Sat,Sun", "from": "00:00", "to": "24:00", "factor": 0}])");
  EXPECT_FALSE(hours.IsCheap(At("2026-01-02T23:59:59Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-01-03T00:00:00Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-01-04T23:59:59Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-01-05T00:00:00Z")));
  EXPECT_EQ(Next(hours, "2026-01-05T00:00:00Z"), "2026-01-10T00:00:00Z");
}

TEST(CheapHours, TheFirstWindowThatCoversTheTimeCounts) {
  const CheapHours hours = Read(R"([
    {"days": "*", "from": "02:00", "to": "03:00", "factor": 2},
    {"days": "*", "from": "01:00", "to": "05:00", "factor": 0.5},
    {"days": "*", "from": "04:00", "to": "06:00", "factor": 0.25}])");
  EXPECT_EQ(hours.FactorAt(At("2026-01-01T00:30:00Z")), 1);
  EXPECT_EQ(hours.FactorAt(At("2026-01-01T01:30:00Z")), 0.5);
  EXPECT_EQ(hours.FactorAt(At("2026-01-01T02:30:00Z")), 2);
  EXPECT_EQ(hours.FactorAt(At("2026-01-01T04:30:00Z")), 0.5);
  EXPECT_EQ(hours.FactorAt(At("2026-01-01T05:30:00Z")), 0.25);
  // Cheap hours also begin where expensive ones end.
  EXPECT_EQ(Next(hours, "2026-01-01T02:30:00Z"), "2026-01-01T03:00:00Z");
}

TEST(CheapHours, HoursThatDearOnesHideNeverCome) {
  const CheapHours hours = Read(R"([
    {"from": "00:00", "to": "24:00", "factor": 1},
    {"from": "01:00", "to": "05:00", "factor": 0.5}])");
  EXPECT_TRUE(hours.any());
  EXPECT_EQ(Next(hours, "2026-01-01T00:00:00Z"), "never");
  EXPECT_FALSE(Read(R"([{"from": "00:00", "to": "12:00", "factor": 1}])").any());
  EXPECT_FALSE(Read("[]").any());
}

TEST(CheapHours, AreByTheWallClockOfTheirZone) {
  const CheapHours hours =
      Read(R"([{"from": "22:00", "to": "06:00", "timezone": "Europe/Berlin", "factor": 0.5}])");
  EXPECT_EQ(Next(hours, "2026-01-15T12:00:00Z"), "2026-01-15T21:00:00Z");  // CET.
  EXPECT_EQ(Next(hours, "2026-07-15T12:00:00Z"), "2026-07-15T20:00:00Z");  // CEST.
  // The night in which 02:00 becomes 03:00 is an hour shorter: 21:00Z..04:00Z.
  EXPECT_TRUE(hours.IsCheap(At("2026-03-29T03:59:59Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-03-29T04:00:00Z")));
  // The night in which 03:00 becomes 02:00 is an hour longer: 20:00Z..05:00Z.
  EXPECT_TRUE(hours.IsCheap(At("2026-10-24T20:00:00Z")));
  EXPECT_TRUE(hours.IsCheap(At("2026-10-25T04:59:59Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-10-25T05:00:00Z")));
}

TEST(CheapHours, AnHourThatTheClockSkipsDoesNotCome) {
  const CheapHours hours = Read(
      R"([{"days": "Sun", "from": "02:15", "to": "02:45", "timezone": "Europe/Berlin", "factor": 0}])");
  EXPECT_EQ(Next(hours, "2026-03-22T02:00:00Z"), "2026-04-05T00:15:00Z");
  // A window that begins in the gap begins after it.
  const CheapHours longer = Read(
      R"([{"days": "Sun", "from": "02:15", "to": "05:00", "timezone": "Europe/Berlin", "factor": 0}])");
  EXPECT_EQ(Next(longer, "2026-03-29T00:00:00Z"), "2026-03-29T01:00:00Z");
}

TEST(CheapHours, AnHourThatTheClockRepeatsCountsTwice) {
  const CheapHours hours = Read(
      R"([{"days": "Sun", "from": "02:15", "to": "02:45", "timezone": "Europe/Berlin", "factor": 0}])");
  EXPECT_EQ(Next(hours, "2026-10-24T22:00:00Z"), "2026-10-25T00:15:00Z");
  EXPECT_TRUE(hours.IsCheap(At("2026-10-25T00:44:59Z")));
  EXPECT_FALSE(hours.IsCheap(At("2026-10-25T00:45:00Z")));
  EXPECT_EQ(Next(hours, "2026-10-25T00:45:00Z"), "2026-10-25T01:15:00Z");
  EXPECT_EQ(Next(hours, "2026-10-25T01:45:00Z"), "2026-11-01T01:15:00Z");
}

TEST(CheapHours, NextIsTheFirstCheapSecond) {
  const CheapHours hours = Read(R"([
    {"days": "Sun", "from": "01:30", "to": "02:30", "timezone": "America/New_York", "factor": 3},
    {"days": "Sat-Mon", "from": "00:30", "to": "03:10", "timezone": "America/New_York", "factor": 0.5},
    {"days": "Sun", "from": "23:00", "to": "02:00", "timezone": "Asia/Kolkata", "factor": 0.5}])");
  // Around the clock change on 1 November 2026, minute by minute.
  const absl::Time begin = At("2026-10-31T00:00:00Z");
  const absl::Time end = At("2026-11-03T00:00:00Z");
  std::optional<absl::Time> expected;
  for (absl::Time time = end; time >= begin; time -= absl::Minutes(1)) {
    if (hours.IsCheap(time)) expected = time;
    if (expected) {
      EXPECT_EQ(hours.NextCheap(time), expected) << time;
    }
  }
  EXPECT_TRUE(expected.has_value());
}

}  // namespace
}  // namespace outboard::cost_optimized
