#include "shim/hosts/single_sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outboard::hosts::single_sessions_test {
namespace {

using ::testing::HasSubstr;

TEST(SingleSessions, ReplacesAnotherShimsSessionOnce) {
  SingleSessions sessions;
  sessions.OnHandshake("a");
  sessions.OnProbe("a", "other");
  EXPECT_EQ(sessions.WhyNot("a", "mine"), "") << "the host of a shim that crashed";
  sessions.OnBegun("a");
  sessions.OnProbe("a", "mine");
  EXPECT_EQ(sessions.WhyNot("a", "mine"), "") << "another configuration";
  EXPECT_FALSE(sessions.IsTaken("a", "mine"));
  // The other shim took it back.
  sessions.OnHandshake("a");
  EXPECT_THAT(sessions.WhyNot("a", "mine"), HasSubstr("asking whether another shim has it"));
  sessions.OnProbe("a", "other");
  EXPECT_TRUE(sessions.IsTaken("a", "mine"));
  EXPECT_THAT(sessions.WhyNot("a", "mine"),
              HasSubstr("now session other of another shim, which replaced this shim's session "
                        "mine; waiting until that shim is gone"));
  sessions.OnProbe("a", "");
  EXPECT_EQ(sessions.WhyNot("a", "mine"), "");
  EXPECT_EQ(sessions.WhyNot("b", "mine"), "") << "another instance";
}

TEST(SingleSessions, AnAdministratorLetsItReplaceOnceMore) {
  SingleSessions sessions;
  sessions.OnBegun("a");
  sessions.OnProbe("a", "other");
  EXPECT_NE(sessions.WhyNot("a", "mine"), "");
  sessions.Clear();
  EXPECT_EQ(sessions.WhyNot("a", "mine"), "");
}

TEST(SingleSessions, OnlyALeaderBeginsOne) {
  SingleSessions sessions;
  sessions.SetLeading(false);
  EXPECT_THAT(sessions.WhyNot("a", "mine"), HasSubstr("when it leads"));
  sessions.SetLeading(true);
  EXPECT_EQ(sessions.WhyNot("a", "mine"), "");
}

TEST(SingleSessions, RemembersAFewInstances) {
  SingleSessions sessions;
  sessions.OnBegun("first");
  sessions.OnBegun("second");
  for (size_t i = 2; i <= SingleSessions::kMaxInstances; ++i) sessions.OnBegun(absl::StrCat(i));
  EXPECT_EQ(sessions.WhyNot("first", "mine"), "");
  EXPECT_NE(sessions.WhyNot("second", "mine"), "");
}

// What a host names goes into logs and pages.
TEST(SingleSessions, CutsALongSession) {
  SingleSessions sessions;
  sessions.OnBegun("a");
  sessions.OnProbe("a", std::string(100000, 'x'));
  EXPECT_LT(sessions.WhyNot("a", "mine").size(), 400u);
}

}  // namespace
}  // namespace outboard::hosts::single_sessions_test
