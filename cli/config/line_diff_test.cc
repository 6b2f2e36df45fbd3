#include "cli/config/line_diff.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::config_command::line_diff_test {
namespace {

std::string Diff(const std::string& a, const std::string& b) {
  return UnifiedDiff("old", a, "new", b);
}

// The expected texts are those of GNU diff -u.
TEST(UnifiedDiff, IsEmptyForEqualTexts) { EXPECT_EQ(Diff("a\nb\n", "a\nb\n"), ""); }

TEST(UnifiedDiff, ShowsAChangeWithItsContext) {
  EXPECT_EQ(Diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
            "--- old\n+++ new\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(UnifiedDiff, ShowsAddedAndRemovedLinesAtTheEnds) {
  EXPECT_EQ(Diff("b\nc\n", "a\nb\n"), "--- old\n+++ new\n@@ -1,2 +1,2 @@\n+a\n b\n-c\n");
  EXPECT_EQ(Diff("", "a\n"), "--- old\n+++ new\n@@ -0,0 +1 @@\n+a\n");
  EXPECT_EQ(Diff("a\n", ""), "--- old\n+++ new\n@@ -1 +0,0 @@\n-a\n");
}

TEST(UnifiedDiff, ChangesFarApartAreTwoHunks) {
  std::string a, b;
  for (int i = 1; i <= 20; ++i) {
    absl::StrAppend(&a, i, "\n");
    absl::StrAppend(&b, i == 2 || i == 18 ? -i : i, "\n");
  }
  EXPECT_EQ(Diff(a, b),
            "--- old\n+++ new\n@@ -1,5 +1,5 @@\n 1\n-2\n+-2\n 3\n 4\n 5\n"
            "@@ -15,6 +15,6 @@\n 15\n 16\n 17\n-18\n+-18\n 19\n 20\n");
}

}  // namespace
}  // namespace outboard::config_command::line_diff_test
