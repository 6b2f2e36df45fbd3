#include "shim/reload/unknown_profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::reload::unknown_profiles_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

kube::PodPtr Pod(const std::string& uid, const std::string& scheduler, const std::string& node = "",
                 const kube::PodScheduledCondition& scheduled = {}) {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(uid);
  pod->pod.set_scheduler_name(scheduler);
  pod->pod.set_node_name(node);
  pod->scheduled = scheduled;
  return pod;
}

class UnknownProfilesTest : public ::testing::Test {
 protected:
  UnknownProfilesTest() { profiles_.Configure({"ai-scheduler", "batch"}, {"ai-"}); }
  std::vector<std::string> Unreported(size_t limit = 100) {
    std::vector<std::string> uids;
    profiles_.TakeUnreported(limit, later_,
                             [&](const kube::PodObject& pod) { uids.push_back(pod.uid()); });
    return uids;
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  const absl::Time later_ = now_ + UnknownProfiles::kPatience;
  UnknownProfiles profiles_;
};

TEST_F(UnknownProfilesTest, CountsPodsWhoseNameLooksLikeOurs) {
  profiles_.OnPod(Pod("a", "ai-schedular"), now_);
  profiles_.OnPod(Pod("known", "ai-scheduler"), now_);
  profiles_.OnPod(Pod("others", "volcano"), now_);
  profiles_.OnPod(Pod("placed", "ai-schedular", "n"), now_);
  EXPECT_THAT(profiles_.Count(later_ - absl::Seconds(1)), IsEmpty()) << "too early";
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("ai-schedular", 1)));
  EXPECT_THAT(Unreported(), ElementsAre("a"));
  EXPECT_THAT(Unreported(), IsEmpty()) << "once a pod";
  profiles_.OnPod(Pod("a", "ai-schedular", "n"), later_);
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("ai-schedular", 0)));
}

TEST_F(UnknownProfilesTest, APodThatAnotherSchedulerHandlesDoesNotCount) {
  profiles_.OnPod(Pod("a", "ai-other", "", {"False", "Unschedulable", "0/3 nodes", 0}), now_);
  EXPECT_THAT(profiles_.Count(later_), IsEmpty());
  // The API server writes this one itself.
  profiles_.OnPod(Pod("b", "ai-other", "", {"False", "SchedulingGated", "", 0}), now_);
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("ai-other", 1)));
}

TEST_F(UnknownProfilesTest, AProfileThatWasRemovedIsUnknown) {
  const auto pod = Pod("a", "batch", "", {"False", "Unschedulable", "ours", 0});
  profiles_.OnPod(pod, now_);
  EXPECT_THAT(profiles_.Count(later_), IsEmpty());
  profiles_.Configure({"ai-scheduler"}, {});
  profiles_.OnPod(pod, now_);
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("batch", 1)));
  // Another scheduler has taken the name.
  profiles_.OnPod(Pod("a", "batch", "", {"False", "Unschedulable", "its own", 0}), now_);
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("batch", 0)));
  EXPECT_THAT(Unreported(), IsEmpty());
  // The profile is back.
  profiles_.Configure({"ai-scheduler", "batch"}, {});
  profiles_.OnPod(pod, now_);
  profiles_.OnPodDelete("a");
  EXPECT_THAT(profiles_.Count(later_), ElementsAre(Pair("batch", 0)));
}

TEST_F(UnknownProfilesTest, LabelsAndEventsAreBounded) {
  for (size_t i = 0; i < 2 * UnknownProfiles::kMaxNames; ++i)
    profiles_.OnPod(Pod(absl::StrCat(i), absl::StrCat("ai-", i)), now_);
  const auto counts = profiles_.Count(later_);
  EXPECT_THAT(counts, SizeIs(UnknownProfiles::kMaxNames + 1));
  EXPECT_EQ(counts.at("other"), UnknownProfiles::kMaxNames);
  EXPECT_THAT(Unreported(15), SizeIs(15));
  EXPECT_THAT(Unreported(), SizeIs(2 * UnknownProfiles::kMaxNames - 15));
}

}  // namespace
}  // namespace outboard::reload::unknown_profiles_test
