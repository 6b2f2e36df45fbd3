#include "shim/kube/wire/quantity.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace outboard::kube {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct Case {
  const char* text;
  int64_t value;
  int64_t milli;
};

// Values of resource.Quantity's Value() and MilliValue(), except the saturated ones.
constexpr Case kCases[] = {
    {"0", 0, 0},
    {"00", 0, 0},
    {"-0", 0, 0},
    {"+", 0, 0},
    {".", 0, 0},
    {"Ki", 0, 0},
    {"0Ei", 0, 0},
    {"1", 1, 1000},
    {"+1", 1, 1000},
    {"-1", -1, -1000},
    {"007", 7, 7000},
    {"100m", 1, 100},
    {"1500m", 2, 1500},
    {"-1500m", -2, -1500},
    {"1u", 1, 1},
    {"1n", 1, 1},
    {"1000001u", 2, 1001},
    {"999999999n", 1, 1000},
    {"0.1", 1, 100},
    {".5", 1, 500},
    {"5.", 5, 5000},
    {"1.0005", 2, 1001},
    {"2.5k", 2500, 2500000},
    {"1k", 1000, 1000000},
    {"3M", 3000000, 3000000000},
    {"4G", 4000000000, 4000000000000},
    {"5T", 5000000000000, 5000000000000000},
    {"6P", 6000000000000000, 6000000000000000000},
    {"7E", 7000000000000000000, kMax},
    {"1Ki", 1024, 1024000},
    {"1.5Gi", 1610612736, 1610612736000},
    {"0.1Mi", 104858, 104857600},
    {"0.0001Ki", 1, 103},
    {"32Gi", 34359738368, 34359738368000},
    {"1Ti", 1099511627776, 1099511627776000},
    {"2Pi", 2251799813685248, 2251799813685248000},
    {"1Ei", 1152921504606846976, kMax},
    {"7.9999999999999999999Ei", kMax, kMax},
    {"8Ei", kMax, kMax},
    {"9223372036854775807", kMax, kMax},
    {"9223372036854775808", kMax, kMax},
    {"-9223372036854775808", -kMax, -kMax},
    {"123456789012345", 123456789012345, 123456789012345000},
    {"1234567890123456", 1234567890123456, 1234567890123456000},
    {"1e3", 1000, 1000000},
    {"1E3", 1000, 1000000},
    {"1E", 1000000000000000000, kMax},
    {"12e-1", 2, 1200},
    {"1e+2", 100, 100000},
    {"1e-12", 1, 1},
    {"1e-1000000", 1, 1},
    {"1e1000000", kMax, kMax},
    {"0e1000000", 0, 0},
    {"1e4294967296", 1, 1000},
    {"0.00000000000000000000000000000001", 1, 1},
    {"1000000000000000000000000000000e-30", 1, 1000},
    {"100000000000000000000000000000000000000000.0e-41", 1, 1000},
    {"1.00000000000000000000000000000000001", 2, 1001},
};

TEST(Quantity, Values) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    absl::StatusOr<int64_t> value = QuantityValue(c.text);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, c.value);
    absl::StatusOr<int64_t> milli = QuantityMilliValue(c.text);
    ASSERT_TRUE(milli.ok()) << milli.status();
    EXPECT_EQ(*milli, c.milli);
  }
}

TEST(Quantity, Refused) {
  constexpr const char* kFormat =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  constexpr const char* kNumber = "unable to parse numeric part of quantity";
  constexpr const char* kSuffix = "unable to parse quantity's suffix";
  const std::pair<const char*, const char*> cases[] = {
      {"", kFormat},
      {" 1", kFormat},
      {"1 ", kFormat},
      {"1Gb", kFormat},
      {"1.2.3", kFormat},
      {"abc", kFormat},
      {"1e3e", kFormat},
      {"--1", kSuffix},
      {"1K", kSuffix},
      {"1KI", kFormat},
      {"1ki", kSuffix},
      {"1mi", kSuffix},
      {"1ee3", kSuffix},
      {"1e", kSuffix},
      {"1m5", kSuffix},
      {"1MiB", kFormat},
      {"1e99999999999999999999", kSuffix},
      {"Ei", kNumber},
      {"Pi", kNumber},
      {".e-20", kNumber},
      {"1-", kSuffix},
      {"1+5", kSuffix},
      {"1\xff", kFormat},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    absl::StatusOr<int64_t> value = QuantityValue(text);
    ASSERT_FALSE(value.ok()) << *value;
    EXPECT_EQ(std::string(value.status().message()), message);
    EXPECT_FALSE(QuantityMilliValue(text).ok());
  }
}

// The quick path and the general path agree: a leading + bypasses the quick path.
TEST(Quantity, PathsAgree) {
  for (const char* suffix : {"", "m", "k", "M", "G", "Ki", "Mi", "Gi"}) {
    for (int64_t number : {0LL, 1LL, 7LL, 999LL, 1000LL, 1001LL, 123456789LL, 99999999999999LL}) {
      const std::string text = std::to_string(number) + suffix;
      EXPECT_EQ(*QuantityValue(text), *QuantityValue("+" + text)) << text;
      EXPECT_EQ(*QuantityMilliValue(text), *QuantityMilliValue("+" + text)) << text;
    }
  }
}

}  // namespace
}  // namespace outboard::kube
