#include "shim/scheduler/permit_waits.h"

#include <gtest/gtest.h>

namespace outboard::scheduler {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(100);

v1beta1::PermitResponse Waits(std::initializer_list<std::pair<const char*, int64_t>> waits) {
  v1beta1::PermitResponse response;
  for (const auto& [plugin, millis] : waits) {
    response.add_waits()->set_plugin(plugin);
    response.mutable_waits(response.waits_size() - 1)->set_timeout_micros(millis * 1000);
  }
  return response;
}

v1beta1::WaitDecision Decision(uint64_t attempt, const std::string& plugin, bool allow,
                               const std::string& message = "") {
  v1beta1::WaitDecision decision;
  decision.set_attempt_id(attempt);
  decision.set_pod_uid("uid");
  decision.set_plugin(plugin);
  decision.set_allow(allow);
  decision.set_message(message);
  return decision;
}

TEST(WaitingPods, RenewingKeepsLimitsAndPluginsOfOtherHosts) {
  WaitingPods waiting;
  const auto later = kStart + absl::Milliseconds(500);
  ASSERT_FALSE(waiting.Add(1, "uid", Waits({{"A", 1000}, {"B", 2000}, {"C", 3000}}), kStart));
  ASSERT_FALSE(waiting.Renew(1, {"A", "B", "D"}, Waits({{"B", 9000}, {"D", 4000}}), later));
  const std::vector<cache::PluginWait> left = waiting.Describe(1);
  ASSERT_EQ(left.size(), 3u);
  EXPECT_EQ(left[0].plugin, "B");
  EXPECT_EQ(left[0].deadline, kStart + absl::Seconds(2));
  EXPECT_EQ(left[1].plugin, "C");
  EXPECT_EQ(left[2].plugin, "D");
  EXPECT_EQ(left[2].deadline, later + absl::Seconds(4));
  EXPECT_FALSE(waiting.Renew(1, {"B", "D"}, Waits({}), later));
  const auto end = waiting.Renew(1, {"C"}, Waits({}), later);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->allowed);
  EXPECT_EQ(end->waited, absl::Milliseconds(500));
  EXPECT_FALSE(waiting.Renew(1, {"C"}, Waits({}), later)) << "no wait is left";
}

TEST(WaitingPods, GoesOnWhenEveryPluginHasAllowed) {
  WaitingPods waiting;
  EXPECT_FALSE(waiting.Add(1, "uid", Waits({{"A", 1000}, {"B", 2000}}), kStart));
  EXPECT_FALSE(waiting.Decide(Decision(1, "A", true), kStart));
  const auto end = waiting.Decide(Decision(1, "B", true), kStart + absl::Seconds(1));
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->allowed);
  EXPECT_EQ(end->waited, absl::Seconds(1));
  EXPECT_EQ(waiting.size(), 0u);
}

TEST(WaitingPods, OneRejectionIsEnough) {
  WaitingPods waiting;
  waiting.Add(1, "uid", Waits({{"A", 1000}, {"B", 2000}}), kStart);
  const auto end = waiting.Decide(Decision(1, "B", false, "no"), kStart);
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->allowed);
  EXPECT_EQ(end->plugin, "B");
  EXPECT_EQ(end->message, "no");
}

TEST(WaitingPods, TheFirstLimitRejects) {
  WaitingPods waiting;
  waiting.Add(1, "uid", Waits({{"A", 90000}, {"B", 2000}}), kStart);
  EXPECT_EQ(waiting.NextDeadline(), kStart + absl::Seconds(2));
  EXPECT_FALSE(waiting.TakeExpired(kStart + absl::Seconds(1)));
  const auto end = waiting.TakeExpired(kStart + absl::Seconds(2));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->message, "rejected due to timeout after waiting 2s at plugin B");
}

TEST(WaitingPods, CapsALimitAtFifteenMinutes) {
  WaitingPods waiting;
  waiting.Add(1, "uid", Waits({{"A", 100000000}}), kStart);
  EXPECT_EQ(waiting.NextDeadline(), kStart + absl::Minutes(15));
}

TEST(WaitingPods, ADecisionThatCameEarlyCounts) {
  WaitingPods waiting;
  EXPECT_FALSE(waiting.Decide(Decision(7, "A", true), kStart));
  const auto end = waiting.Add(7, "uid", Waits({{"A", 1000}}), kStart);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->allowed);
}

TEST(WaitingPods, AnEarlyDecisionDiesWithItsAttempt) {
  WaitingPods waiting;
  waiting.Decide(Decision(7, "A", true), kStart);
  waiting.EndAttempt(7);
  EXPECT_FALSE(waiting.Add(7, "uid", Waits({{"A", 1000}}), kStart));
}

TEST(WaitingPods, ADecisionOnAnotherPodIsIgnored) {
  WaitingPods waiting;
  waiting.Add(1, "other", Waits({{"A", 1000}}), kStart);
  EXPECT_FALSE(waiting.Decide(Decision(1, "A", true), kStart));
  EXPECT_TRUE(waiting.Waits(1));
}

TEST(GoDuration, PrintsAsGoDoes) {
  EXPECT_EQ(GoDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(GoDuration(absl::Seconds(30)), "30s");
  EXPECT_EQ(GoDuration(absl::Minutes(5)), "5m0s");
  EXPECT_EQ(GoDuration(absl::Minutes(90) + absl::Milliseconds(1500)), "1h30m1.5s");
  EXPECT_EQ(GoDuration(absl::Milliseconds(250)), "250ms");
  EXPECT_EQ(GoDuration(absl::Microseconds(1500)), "1.5ms");
  EXPECT_EQ(GoDuration(absl::Nanoseconds(1500)), "1.5µs");
  EXPECT_EQ(GoDuration(absl::Nanoseconds(15)), "15ns");
}

}  // namespace
}  // namespace outboard::scheduler
