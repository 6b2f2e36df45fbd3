#include "shim/extender/json_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Scan(absl::string_view text) {
  JsonScanner scan(text);
  const bool taken = scan.Skip() && scan.End();
  EXPECT_EQ(taken, scan.status().ok());
  return scan.status();
}

TEST(JsonScanner, TakesWhatIsJson) {
  for (const char* text :
       {"{}", "[]", " [ 1 , -2.5e+3 , 0, true, false, null, \"a\\u00e9\\n\" ] ",
        "{\"a\":{\"b\":[{}]}}", "\"\\ud83d\\ude00\"", "\"\xc3\xa9\"", "-0", "1E5"}) {
    EXPECT_TRUE(Scan(text).ok()) << text << Scan(text);
  }
}

TEST(JsonScanner, RefusesWhatIsNot) {
  for (const char* text :
       {"",          "{",     "[1,]",     "{\"a\":1,}",  "{a:1}",       "[1 2]",
        "{\"a\" 1}", "01",    "1.",       "1e",          "-",           "nul",
        "truth",     "\"a",   "\"\\x\"",  "\"\\u12g4\"", "\"\\ud83d\"", "\"\\ude00\"",
        "\"\n\"",    "[] []", "\"\xff\"", "\"\xc3\"",    "'a'",         "\xc3\xa9"}) {
    EXPECT_FALSE(Scan(text).ok()) << text;
  }
  EXPECT_EQ(Scan("{\"a\": tru}").message(), "byte 6: invalid JSON value");
}

TEST(JsonScanner, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_TRUE(Scan(nested(JsonScanner::kMaxDepth)).ok());
  EXPECT_THAT(std::string(Scan(nested(JsonScanner::kMaxDepth + 1)).message()),
              HasSubstr("nested too deep"));
  EXPECT_FALSE(Scan(std::string(1000000, '{')).ok());
}

TEST(JsonScanner, ReadsMembersAsTheyStand) {
  JsonScanner scan(R"( {"a\u0062": "x\ty", "n": -12, "raw": {"k": [1, 2]} , "z": null})");
  std::vector<std::string> seen;
  std::string text;
  int64_t number = 0;
  EXPECT_TRUE(scan.Object([&](absl::string_view name) {
    seen.emplace_back(name);
    if (name == "ab") return scan.String(&text);
    if (name == "n") return scan.Int(&number);
    if (name == "z") return scan.TakeNull();
    const size_t mark = scan.Mark();
    if (!scan.Skip()) return false;
    seen.emplace_back(scan.Since(mark));
    return true;
  }));
  EXPECT_TRUE(scan.End());
  EXPECT_THAT(seen, ElementsAre("ab", "n", "raw", R"({"k": [1, 2]})", "z"));
  EXPECT_EQ(text, "x\ty");
  EXPECT_EQ(number, -12);
}

TEST(JsonScanner, ReportsWhatWasExpected) {
  std::string text;
  int64_t number = 0;
  JsonScanner number_scan("[1.5]");
  EXPECT_FALSE(number_scan.List([&] { return number_scan.Int(&number); }));
  EXPECT_EQ(number_scan.status().message(), "byte 4: expected an integer");
  JsonScanner string_scan("5");
  EXPECT_FALSE(string_scan.String(&text));
  EXPECT_FALSE(string_scan.Skip());  // The error is permanent.
  EXPECT_EQ(string_scan.status().message(), "byte 0: expected a string");
}

TEST(AppendJsonString, Escapes) {
  std::string out;
  AppendJsonString("node-1", &out);
  AppendJsonString("a\"b\\\n\xff", &out);
  EXPECT_EQ(out, "\"node-1\"\"a\\\"b\\\\\\n\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace outboard::extender
