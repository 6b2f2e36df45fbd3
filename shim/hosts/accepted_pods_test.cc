// Replicas follow what a leader has said about instances in pods.
#include "shim/hosts/accepted_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "shim/hosts/testing/replacement.h"

namespace outboard::hosts::replacement_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AcceptedPodsTest : public ReplacementTest {
 protected:
  AcceptedPodsTest() { EXPECT_TRUE(hosts_.Reload(Configuration(3), now_).ok()); }
  // The gates of the pods of these instances; all others have none.
  void Gates(const std::vector<std::pair<std::string, bool>>& gates) {
    std::vector<GatedInstance> all;
    for (const auto& [id, is_accepted] : gates)
      all.push_back({"main", fakes_[id]->address(), is_accepted});
    hosts_.accepted_pods()->Set(std::move(all));
  }
  void Leads(bool leads) { hosts_.accepted_pods()->SetLeading(leads, now_); }
  // A serves and is accepted; B is newer, of another build, and waits in the shadow.
  void BIsInTheShadowOfA() {
    Comes("a", 1, "old");
    Gates({{"a", true}});
    WaitFor({"a serving"});
    Comes("b", 2, "new");
    Gates({{"a", true}, {"b", false}});
    WaitFor({"a serving", "b shadow"});
  }
  // A is accepted and has not answered yet.
  void BIsReadyBeforeA() {
    Starts("a");
    Comes("b", 2, "new");
    Gates({{"a", true}, {"b", false}});
    WaitUntilReady("b");
  }
  void WaitUntilReady(const std::string& id) {
    RunUntil([&] { return ViewOf(id).usable; });
    ASSERT_TRUE(ViewOf(id).usable);
  }
};

TEST_F(AcceptedPodsTest, AReplicaThatDoesNotLeadFollowsTheLeader) {
  Leads(false);
  BIsInTheShadowOfA();
  now_ += absl::Hours(2);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b shadow"));
  Gates({{"a", true}, {"b", true}});
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
}

TEST_F(AcceptedPodsTest, ItComparesOnceItLeads) {
  Leads(false);
  BIsInTheShadowOfA();
  now_ += absl::Hours(2);
  Leads(true);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b shadow"));
  ScheduleUntil([&] { return ViewOf("b").state == InstanceState::kServing; });
  EXPECT_EQ(ViewOf("b").shadow.cycles, 3);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving")) << "its gate is written later";
}

TEST_F(AcceptedPodsTest, WithoutPodsToCompareTheTimeCountsFromTheBeginningOfLeading) {
  Leads(false);
  BIsInTheShadowOfA();
  now_ += absl::Hours(2);
  Leads(true);
  now_ += absl::Minutes(59);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a serving", "b shadow"));
  now_ += absl::Minutes(1);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
}

TEST_F(AcceptedPodsTest, AnAcceptedInstanceServesFirst) {
  BIsReadyBeforeA();
  EXPECT_THAT(States(), ElementsAre("b syncing"));
  Answers("a", 1, "old");
  WaitFor({"b shadow", "a serving"});
}

TEST_F(AcceptedPodsTest, IfItDoesNotComeInTimeAnotherServes) {
  BIsReadyBeforeA();
  now_ += AcceptedPods::kFirst;
  WaitFor({"b serving"});
  Answers("a", 1, "old");
  WaitFor({"b shadow", "a serving"});
  Schedule("one");
  EXPECT_THAT(effects_.failed, IsEmpty());
}

TEST_F(AcceptedPodsTest, TheFirstInstanceOfAllServesAtOnce) {
  Comes("a", 1, "new");
  Gates({{"a", false}});
  WaitFor({"a serving"});
  Comes("b", 2, "new");
  Gates({{"a", false}, {"b", false}});
  WaitFor({"a serving", "b shadow"});
  ScheduleUntil([&] { return ViewOf("b").state == InstanceState::kServing; });
  Gates({{"a", true}, {"b", false}});
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
}

TEST_F(AcceptedPodsTest, AReplicaGoesBackWithTheLeader) {
  Leads(false);
  BIsInTheShadowOfA();
  Gates({{"a", true}, {"b", true}});
  WaitFor({"a standby", "b serving"});
  now_ += absl::Minutes(1);
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("b serving"));
  EXPECT_THAT(retired_, ElementsAre(fakes_["a"]->address()));
  // The leader has quarantined b.
  Gates({{"a", true}, {"b", false}});
  RunOnce();
  EXPECT_THAT(lost_, ElementsAre(fakes_["a"]->address())) << "it is called again";
  Answers("a", 1, "old");
  WaitFor({"b shadow", "a serving"});
  // The first session has ended for ever.
  const std::vector<std::string> sessions = SessionsOf("a");
  ASSERT_THAT(sessions, SizeIs(2));
  EXPECT_EQ(sessions[1], absl::StrCat(sessions[0], "-1"));
}

TEST_F(AcceptedPodsTest, AnAdministratorsChoiceStays) {
  BIsInTheShadowOfA();
  EXPECT_TRUE(hosts_.Swap("main", "b", now_).ok());
  RunOnce();
  EXPECT_THAT(States(), ElementsAre("a standby", "b serving"));
}

TEST_F(AcceptedPodsTest, WithoutAComparisonTheLeaderStillDecides) {
  EXPECT_TRUE(hosts_.Reload(Configuration(0), now_).ok());
  Leads(false);
  Comes("a", 1, "old");
  Gates({{"a", true}});
  WaitFor({"a serving"});
  Comes("b", 2, "new");
  Gates({{"a", true}, {"b", false}});
  WaitUntilReady("b");
  EXPECT_THAT(States(), ElementsAre("a serving", "b syncing"));
  Leads(true);
  WaitFor({"a standby", "b serving"});
}

}  // namespace
}  // namespace outboard::hosts::replacement_test
