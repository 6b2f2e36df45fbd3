#include "plugin_host/sdk/label_values.h"

#include <gtest/gtest.h>

#include <string>

namespace outboard::sdk {
namespace {

TEST(LabelValues, AmountsAreDecimalNumbersWithoutASign) {
  EXPECT_EQ(ParseAmount("3"), 3);
  EXPECT_EQ(ParseAmount("0.25"), 0.25);
  EXPECT_EQ(ParseAmount("1e3"), 1000);
  EXPECT_EQ(ParseAmount("2.5E+1"), 25);
  EXPECT_EQ(ParseAmount("25e-2"), 0.25);
  EXPECT_EQ(ParseAmount("007"), 7);
  for (const char* text :
       {"",    " ",  "-1", "+1", " 1", "1 ",  "0x10",  "inf",   "nan", "NaN", "1e999",
        "1,5", ".5", "1.", "e3", "1e", "1e+", "1e3.5", "1.2.3", "1GB", "٣",   "1-1"}) {
    EXPECT_EQ(ParseAmount(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseAmount("11", 10), std::nullopt);
}

TEST(LabelValues, CountsAreDigits) {
  EXPECT_EQ(ParseCount("0"), 0);
  EXPECT_EQ(ParseCount("42"), 42);
  for (const char* text : {"", "-1", "+1", " 1", "1.0", "99999999999999999999", "x"})
    EXPECT_EQ(ParseCount(text), std::nullopt) << text;
  EXPECT_EQ(ParseCount("11", 10), std::nullopt);
}

TEST(LabelValues, BooleansAreTrueOrFalse) {
  EXPECT_EQ(ParseBool("true"), true);
  EXPECT_EQ(ParseBool("False"), false);
  for (const char* text : {"", "1", "yes", "true "}) EXPECT_EQ(ParseBool(text), std::nullopt);
}

TEST(LabelValues, TimestampsAreThoseOfRfc3339) {
  EXPECT_EQ(ParseTimestamp("1970-01-01T01:00:00+01:00"), absl::UnixEpoch());
  EXPECT_EQ(ParseTimestamp("1970-01-01T00:00:00.5Z"), absl::UnixEpoch() + absl::Milliseconds(500));
  for (const char* text : {"", "infinite-future", "tomorrow", "2026-01-01", "2026-01-01T00:00:00",
                           "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", " 2026-01-01T00:00:00Z",
                           "2026-01-01T00:00:00Z ", "99999-01-01T00:00:00Z",
                           "-0001-01-01T00:00:00Z", "1767225600", "2026-01-01T00:00:00+99:99"}) {
    EXPECT_EQ(ParseTimestamp(text), std::nullopt) << text;
  }
}

TEST(LabelValues, IsComplainedAboutOnceUntilTheObjectGoes) {
  MalformedValues malformed("Plugin");
  malformed.Warn("node a", "price", "much", "a number");
  malformed.Warn("node a", "price", "more", "a number");
  EXPECT_EQ(malformed.warned(), 1);
  malformed.Warn("node a", "memory", "", "a number");
  malformed.Warn("node b", "price", std::string(100000, 'x'), "a number");
  EXPECT_EQ(malformed.warned(), 3);
  malformed.Forget("node a");
  malformed.Warn("node a", "price", "much", "a number");
  EXPECT_EQ(malformed.warned(), 4);
}

TEST(LabelValues, ComplaintsAreBounded) {
  MalformedValues malformed("Plugin");
  for (int i = 0; i < 20001; ++i) malformed.Warn(std::to_string(i), "k", "v", "w");
  malformed.Warn("20000", "k", "v", "w");
  EXPECT_EQ(malformed.warned(), 20001);
}

}  // namespace
}  // namespace outboard::sdk
