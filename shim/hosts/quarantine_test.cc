#include "shim/hosts/quarantine.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace outboard::hosts {
namespace {

TEST(Quarantine, KnowsWhyABuildMayNotServe) {
  Quarantine quarantine;
  EXPECT_EQ(quarantine.Find("a"), nullptr);
  quarantine.Add("a", "first");
  quarantine.Add("a", "second");
  ASSERT_NE(quarantine.Find("a"), nullptr);
  EXPECT_EQ(*quarantine.Find("a"), "second");
  EXPECT_EQ(quarantine.size(), 1u);
  quarantine.Clear();
  EXPECT_EQ(quarantine.Find("a"), nullptr);
}

TEST(Quarantine, ForgetsTheOldestBuild) {
  Quarantine quarantine;
  for (size_t i = 0; i < Quarantine::kMaxBuilds; ++i) quarantine.Add(absl::StrCat("b", i), "x");
  quarantine.Add("b0", "again");  // the latest from now on
  for (int i = 0; i < 1000; ++i) quarantine.Add(absl::StrCat("c", i), "x");
  EXPECT_EQ(quarantine.size(), Quarantine::kMaxBuilds);
  EXPECT_EQ(quarantine.Find("b1"), nullptr);
  EXPECT_NE(quarantine.Find("c999"), nullptr);
}

TEST(Quarantine, ABuildThatFailsAgainIsTheLatest) {
  Quarantine quarantine;
  for (size_t i = 0; i < Quarantine::kMaxBuilds; ++i) quarantine.Add(absl::StrCat("b", i), "x");
  quarantine.Add("b0", "again");
  quarantine.Add("new", "x");
  EXPECT_NE(quarantine.Find("b0"), nullptr);
  EXPECT_EQ(quarantine.Find("b1"), nullptr);
}

}  // namespace
}  // namespace outboard::hosts
