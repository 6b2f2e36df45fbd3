#include "shim/informer/reflector_policy.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "shim/informer/resource_version.h"

namespace outboard::informer {
namespace {

using kube::WatchEventType;
using Kind = Step::Kind;

const absl::Time kStart = absl::FromUnixSeconds(1'000'000);

class ReflectorPolicyTest : public ::testing::Test {
 protected:
  static ReflectorPolicyOptions Options() {
    ReflectorPolicyOptions options;
    options.seed = 7;
    return options;
  }
  static Failure Http(int code) {
    Failure failure;
    failure.kind = Failure::Kind::kHttp;
    failure.code = code;
    return failure;
  }
  static Failure InStream(int code, const std::string& reason = "") {
    Failure failure = Http(code);
    failure.kind = Failure::Kind::kEvent;
    failure.reason = reason;
    return failure;
  }
  static Failure Of(Failure::Kind kind) {
    Failure failure;
    failure.kind = kind;
    return failure;
  }

  // Puts the policy into a watch from version 100, opened at kStart.
  void Watching() {
    ASSERT_EQ(policy_.Next(kStart).kind, Kind::kWatchList);
    policy_.OnWatchOpened(kStart);
    ASSERT_EQ(policy_.OnEvent(WatchEventType::kBookmark, "100", true), EventVerdict::kInitialDone);
  }

  ReflectorPolicy policy_{Options()};
};

TEST(ResourceVersion, Order) {
  EXPECT_LT(*CompareVersions("9", "10"), 0);
  EXPECT_GT(*CompareVersions("20", "19"), 0);
  EXPECT_EQ(*CompareVersions("7", "7"), 0);
  EXPECT_LT(*CompareVersions("18446744073709551615", "18446744073709551616"), 0);
  EXPECT_FALSE(CompareVersions("a1", "2").has_value());
  EXPECT_FALSE(CompareVersions("01", "2").has_value());
  EXPECT_FALSE(CompareVersions("", "2").has_value());
}

TEST_F(ReflectorPolicyTest, InitialEventsComeInAnyOrderAndOnlyTheEndHasAVersion) {
  Step step = policy_.Next(kStart);
  EXPECT_EQ(step.kind, Kind::kWatchList);
  EXPECT_EQ(step.resource_version, "");
  EXPECT_GE(step.timeout_seconds, 300);
  EXPECT_LE(step.timeout_seconds, 600);
  policy_.OnWatchOpened(kStart);
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kAdded, "90", false), EventVerdict::kApply);
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kAdded, "20", false), EventVerdict::kApply);
  EXPECT_EQ(policy_.resource_version(), "");
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kBookmark, "100", true), EventVerdict::kInitialDone);
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kModified, "101", false), EventVerdict::kApply);
  policy_.OnEnd(Of(Failure::Kind::kClean), kStart + absl::Minutes(6));
  step = policy_.Next(kStart + absl::Minutes(6));
  // Resumed at once as a plain watch: requesting the initial events again would send the whole
  // state again.
  EXPECT_EQ(step.kind, Kind::kWatch);
  EXPECT_EQ(step.resource_version, "101");
  EXPECT_EQ(step.delay, absl::ZeroDuration());
}

TEST_F(ReflectorPolicyTest, ServersWithoutWatchListAreListedFromNowOn) {
  for (int code : {400, 404, 405, 422}) {
    ReflectorPolicy policy(Options());
    ASSERT_EQ(policy.Next(kStart).kind, Kind::kWatchList);
    policy.OnEnd(Http(code), kStart);
    Step step = policy.Next(kStart);
    EXPECT_EQ(step.kind, Kind::kList) << code;
    EXPECT_EQ(step.delay, absl::ZeroDuration()) << code;
    EXPECT_EQ(step.page_size, 500);
    EXPECT_TRUE(policy.OnPage("50", ""));
    ASSERT_EQ(policy.Next(kStart).kind, Kind::kWatch);
    policy.OnEnd(InStream(410), kStart);
    EXPECT_EQ(policy.Next(kStart).kind, Kind::kList) << code;
  }
}

TEST_F(ReflectorPolicyTest, AMissingEndOfTheInitialEventsFallsBackToLists) {
  ASSERT_EQ(policy_.Next(kStart).kind, Kind::kWatchList);
  policy_.OnWatchOpened(kStart);
  policy_.OnEvent(WatchEventType::kAdded, "90", false);
  policy_.OnData(kStart + absl::Seconds(1));
  EXPECT_EQ(policy_.SilenceDeadline(), kStart + absl::Seconds(31));
  policy_.OnEnd(Of(Failure::Kind::kSilence), kStart + absl::Seconds(31));
  EXPECT_EQ(policy_.Next(kStart).kind, Kind::kList);
}

TEST_F(ReflectorPolicyTest, AnOutageAtTheStartKeepsWatchList) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(policy_.Next(kStart).kind, Kind::kWatchList);
    policy_.OnEnd(i % 2 == 0 ? Of(Failure::Kind::kConnection) : Http(429), kStart);
  }
  EXPECT_GT(policy_.Next(kStart).delay, absl::ZeroDuration());
}

TEST_F(ReflectorPolicyTest, ExpiredStartsFromNothingOnceAndWithAPause) {
  for (const Failure& expired :
       {Http(410), InStream(410), InStream(410, "Expired"), InStream(0, "Gone")}) {
    ReflectorPolicy policy(Options());
    policy.Next(kStart);
    policy.OnWatchOpened(kStart);
    policy.OnEvent(WatchEventType::kBookmark, "100", true);
    policy.OnEnd(expired, kStart);
    Step step = policy.Next(kStart);
    EXPECT_EQ(step.kind, Kind::kWatchList);
    EXPECT_EQ(step.resource_version, "");
    EXPECT_GE(step.delay, absl::Milliseconds(800));
  }
}

TEST_F(ReflectorPolicyTest, AVersionThatIsTooLargeIsNotAskedForAgain) {
  Watching();
  Failure failure = Http(504);
  failure.version_too_large = true;
  failure.retry_after = absl::Seconds(9);
  policy_.OnEnd(failure, kStart);
  Step step = policy_.Next(kStart);
  EXPECT_EQ(step.resource_version, "");
  EXPECT_EQ(step.kind, Kind::kWatchList);
  EXPECT_EQ(step.delay, absl::Seconds(9));
  EXPECT_EQ(policy_.list_reason(), ListReason::kExpired);
}

TEST_F(ReflectorPolicyTest, ABookmarkFromThePastIsARewind) {
  Watching();
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kBookmark, "99", false), EventVerdict::kReset);
  EXPECT_EQ(policy_.rewinds(), 1u);
  EXPECT_EQ(policy_.list_reason(), ListReason::kStart);
  policy_.OnEnd(InStream(410, kRewound), kStart);
  EXPECT_EQ(policy_.list_reason(), ListReason::kRewound);
  ASSERT_EQ(policy_.Next(kStart).kind, Kind::kWatchList);
  policy_.OnWatchOpened(kStart);
  // The complete state with older versions is accepted.
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kBookmark, "60", true), EventVerdict::kInitialDone);
  EXPECT_EQ(policy_.rewinds(), 2u);
  EXPECT_EQ(policy_.resource_version(), "60");
}

TEST_F(ReflectorPolicyTest, EventsFromThePastAreIgnoredAndDoNotMoveTheVersionBack) {
  Watching();
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kModified, "105", false), EventVerdict::kApply);
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kDeleted, "104", false), EventVerdict::kIgnore);
  EXPECT_EQ(policy_.resource_version(), "105");
}

TEST_F(ReflectorPolicyTest, SilenceCountsOnlyAfterAPeriodicBookmark) {
  Watching();
  EXPECT_GT(policy_.SilenceDeadline(), kStart + absl::Minutes(5));
  policy_.OnData(kStart + absl::Minutes(1));
  EXPECT_EQ(policy_.OnEvent(WatchEventType::kBookmark, "110", false), EventVerdict::kBookmark);
  EXPECT_EQ(policy_.resource_version(), "110");
  EXPECT_EQ(policy_.SilenceDeadline(), kStart + absl::Seconds(150));
  policy_.OnEnd(Of(Failure::Kind::kSilence), kStart + absl::Seconds(150));
  Step step = policy_.Next(kStart + absl::Seconds(150));
  EXPECT_EQ(step.resource_version, "110");
  EXPECT_EQ(step.delay, absl::ZeroDuration());
}

TEST_F(ReflectorPolicyTest, AVeryShortWatchIsPausedAfter) {
  Watching();
  policy_.OnEnd(Of(Failure::Kind::kClean), kStart + absl::Minutes(6));
  for (int i = 0; i < 3; ++i) {
    policy_.Next(kStart + absl::Minutes(6));
    policy_.OnWatchOpened(kStart + absl::Minutes(6));
    policy_.OnEnd(Of(Failure::Kind::kClean), kStart + absl::Minutes(6) + absl::Milliseconds(10));
  }
  EXPECT_GE(policy_.Next(kStart).delay, absl::Milliseconds(3200));
}

TEST_F(ReflectorPolicyTest, BackoffGrowsToThirtySecondsWithJitterAndIsResetByHealth) {
  Watching();
  // A working connection that was lost is replaced at once. Pauses follow failed connections only.
  policy_.OnEnd(Of(Failure::Kind::kConnection), kStart);
  EXPECT_EQ(policy_.Next(kStart).delay, absl::ZeroDuration());
  absl::Duration expected = absl::Milliseconds(800);
  absl::Time now = kStart;
  std::set<int64_t> different;
  for (int i = 0; i < 10; ++i) {
    policy_.OnEnd(Of(Failure::Kind::kConnection), now);
    Step step = policy_.Next(now);
    EXPECT_GE(step.delay, expected);
    EXPECT_LE(step.delay, expected * 2);
    different.insert(absl::ToInt64Microseconds(step.delay) * 1000 /
                     absl::ToInt64Microseconds(expected));
    expected = std::min(expected * 2, absl::Seconds(30));
    now += absl::Seconds(1);
  }
  EXPECT_GT(different.size(), 5u);
  now += absl::Minutes(3);
  policy_.OnEnd(Of(Failure::Kind::kConnection), now);
  EXPECT_LE(policy_.Next(now).delay, absl::Milliseconds(1600));
}

TEST_F(ReflectorPolicyTest, RepeatedFailuresFromOneVersionStartFromNothing) {
  Watching();
  int watches = 0;
  while (policy_.Next(kStart).kind == Kind::kWatch && watches < 100) {
    ++watches;
    policy_.OnEnd(Of(Failure::Kind::kUndecodable), kStart);
  }
  // The first of the five ends the watch that Watching opened.
  EXPECT_EQ(watches, 5);
  EXPECT_EQ(policy_.list_reason(), ListReason::kFailures);
}

TEST_F(ReflectorPolicyTest, TooManyRequestsNeverDropsTheVersion) {
  Watching();
  for (int i = 0; i < 50; ++i) {
    policy_.OnEnd(Http(429), kStart);
    ASSERT_EQ(policy_.Next(kStart).resource_version, "100");
  }
}

TEST(ReflectorPolicyList, PagesUnderTheVersionOfTheFirst) {
  ReflectorPolicyOptions options;
  options.watch_list = false;
  options.page_size = 2;
  ReflectorPolicy policy(options);
  Step step = policy.Next(kStart);
  EXPECT_EQ(step.page_size, 2);
  EXPECT_EQ(step.continue_token, "");
  EXPECT_FALSE(policy.OnPage("10", "a"));
  EXPECT_EQ(policy.Next(kStart).continue_token, "a");
  EXPECT_TRUE(policy.OnPage("12", ""));
  EXPECT_EQ(policy.Next(kStart).resource_version, "10");
}

TEST(ReflectorPolicyList, AnExpiredPageMeansEverythingInOne) {
  ReflectorPolicyOptions options;
  options.watch_list = false;
  ReflectorPolicy policy(options);
  policy.Next(kStart);
  EXPECT_FALSE(policy.OnPage("10", "a"));
  policy.Next(kStart);
  Failure expired;
  expired.kind = Failure::Kind::kHttp;
  expired.code = 410;
  policy.OnEnd(expired, kStart);
  Step step = policy.Next(kStart);
  EXPECT_EQ(step.kind, Kind::kList);
  EXPECT_EQ(step.continue_token, "");
  EXPECT_EQ(step.page_size, 0);
}

}  // namespace
}  // namespace outboard::informer
