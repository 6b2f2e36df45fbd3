#include "shim/host_pods/readiness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace outboard::host_pods {
namespace {

using hosts::InstanceState;
using hosts::InstanceView;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

InstanceView In(InstanceState state, std::string why = "") {
  InstanceView view;
  view.state = state;
  view.why = std::move(why);
  return view;
}

TEST(WantedReadiness, APodIsReadyOnceItsInstanceServes) {
  const InstanceView serving = In(InstanceState::kServing, "it started last");
  const std::optional<Readiness> wanted = WantedReadiness({}, {{"main", &serving}});
  EXPECT_THAT(wanted,
              Optional(Eq(Readiness{"True", "Serving",
                                    "host main: pods are scheduled by it: it started last"})));
  EXPECT_EQ(WantedReadiness(*wanted, {{"main", &serving}}), std::nullopt);
}

TEST(WantedReadiness, WhatIsAwaitedIsSaidFirst) {
  const std::optional<Readiness> none = WantedReadiness({}, {{"main"}});
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->status, "False");
  EXPECT_EQ(none->reason, "NotConnected");
  const InstanceView compared = In(InstanceState::kShadow);
  EXPECT_EQ(WantedReadiness(*none, {{"main", &compared}})->reason, "Comparing");
  EXPECT_EQ(WantedReadiness(*none, {{"main"}}), std::nullopt);
}

TEST(WantedReadiness, AProvenPodStaysReadyUntilItIsRefused) {
  const Readiness ready{"True", "Serving", "host main: pods are scheduled by it"};
  for (const InstanceState state :
       {InstanceState::kWaiting, InstanceState::kSyncing, InstanceState::kShadow,
        InstanceState::kServing, InstanceState::kStandby, InstanceState::kDraining}) {
    const InstanceView view = In(state);
    EXPECT_EQ(WantedReadiness(ready, {{"main", &view}}), std::nullopt) << hosts::StateName(state);
  }
  // Its session ended when it was replaced.
  EXPECT_EQ(WantedReadiness(ready, {{"main"}}), std::nullopt);

  const InstanceView failed = In(InstanceState::kQuarantined, "2 calls were not answered");
  const std::optional<Readiness> wanted = WantedReadiness(ready, {{"main", &failed}});
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->status, "False");
  EXPECT_EQ(wanted->reason, "Quarantined");
  EXPECT_THAT(wanted->message, HasSubstr("2 calls were not answered"));
}

TEST(WantedReadiness, AnInstanceThatIsAcceptedAfterAllIsReady) {
  const Readiness refused{"False", "Quarantined", "host main: its build has failed"};
  const InstanceView syncing = In(InstanceState::kSyncing);
  const std::optional<Readiness> wanted = WantedReadiness(refused, {{"main", &syncing}});
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->status, "False");
  EXPECT_EQ(wanted->reason, "Syncing");
  const InstanceView standby = In(InstanceState::kStandby);
  EXPECT_EQ(WantedReadiness(refused, {{"main", &standby}})->status, "True");
}

TEST(WantedReadiness, EveryHostOfAPodCounts) {
  const InstanceView serving = In(InstanceState::kServing);
  const InstanceView refused = In(InstanceState::kRefused, "no plugin \"X\"");
  const InstanceView syncing = In(InstanceState::kSyncing);
  EXPECT_EQ(WantedReadiness({}, {{"main", &serving}, {"claims", &syncing}})->reason, "Syncing");
  const std::optional<Readiness> wanted =
      WantedReadiness({}, {{"main", &serving}, {"claims", &refused}, {"other", &syncing}});
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->reason, "Refused");
  EXPECT_THAT(wanted->message, HasSubstr("host claims: its configuration or its plugins are not "
                                         "usable: no plugin \"X\"; host other"));
  EXPECT_EQ(WantedReadiness({}, {{"main", &serving}, {"claims", &serving}})->status, "True");
}

TEST(WantedReadiness, HostsOfAPodNeedNotBeReadyAtTheSameTime) {
  const InstanceView syncing = In(InstanceState::kSyncing);
  const InstanceView serving = In(InstanceState::kServing);
  HostInPod replaced{"claims"};
  replaced.was_ready = true;
  EXPECT_EQ(WantedReadiness({}, {{"main", &syncing}, replaced})->reason, "Syncing");
  const std::optional<Readiness> wanted = WantedReadiness({}, {{"main", &serving}, replaced});
  ASSERT_TRUE(wanted.has_value());
  EXPECT_EQ(wanted->status, "True");
  EXPECT_THAT(wanted->message, HasSubstr("host claims: it was ready before"));

  const InstanceView refused = In(InstanceState::kRefused);
  replaced.instance = &refused;
  EXPECT_EQ(WantedReadiness({}, {{"main", &serving}, replaced})->reason, "Refused");
}

TEST(WantedReadiness, LongReasonsAreCut) {
  const InstanceView refused = In(InstanceState::kRefused, std::string(5000, 'x'));
  EXPECT_EQ(WantedReadiness({}, {{"main", &refused}})->message.size(), 1024);
}

}  // namespace
}  // namespace outboard::host_pods
