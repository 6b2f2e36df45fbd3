#include "shim/bind/pod_evictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "shim/kube/testing/scripted_api_client.h"

namespace outboard::bind {
namespace {

using kube::Method;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kMessage[] = "default-scheduler: preempting to accommodate a higher priority pod";

class PodEvictorTest : public ::testing::Test {
 protected:
  PodEvictorTest() {
    PodEvictorOptions options;
    options.fence.deadline = [this] { return fence_; };
    options.fence.clock = [this] { return now_; };
    options.wall = [this] { return now_ - kUptime; };
    options.max_in_flight = 2;
    evictor_ = std::make_unique<PodEvictor>(
        &client_,
        [this](std::function<void(absl::Time)> closure) {
          executor_.push_back(std::move(closure));
        },
        options);
  }
  void Evict(const std::string& name, bool condition_is_set = false) {
    evictor_->Evict(
        {"ns", name, "uid-" + name, 3, condition_is_set, kMessage}, now_,
        [this](const EvictionResult& result, absl::Time) { results_.push_back(result); });
  }
  void Drain() {
    while (!executor_.empty()) {
      std::vector<std::function<void(absl::Time)>> closures;
      closures.swap(executor_);
      for (auto& closure : closures) closure(now_);
    }
  }
  void Answer(int status, const std::string& body = "{}") {
    client_.Answer(status, body);
    Drain();
  }

  // From the wall clock to that of waits.
  static constexpr absl::Duration kUptime = absl::Hours(500000);
  absl::Time now_ = absl::FromUnixSeconds(1700000000) + kUptime;
  absl::Time fence_ = absl::InfiniteFuture();
  std::vector<std::function<void(absl::Time)>> executor_;
  kube::ScriptedApiClient client_;  // its destructor ends pending requests into the executor
  std::unique_ptr<PodEvictor> evictor_;
  std::vector<EvictionResult> results_;
};

TEST_F(PodEvictorTest, WritesTheReasonAndThenDeletesByUid) {
  Evict("v");
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kPatch);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/pods/v/status");
  EXPECT_EQ(client_.request().content_type, kube::kStrategicMergePatch);
  EXPECT_EQ(client_.request().body,
            R"({"metadata":{"uid":"uid-v"},"status":{"conditions":[{"lastProbeTime":null,)"
            R"("lastTransitionTime":"2023-11-14T22:13:20Z",)"
            R"("message":"default-scheduler: preempting to accommodate a higher priority pod",)"
            R"("observedGeneration":3,"reason":"PreemptionByScheduler","status":"True",)"
            R"("type":"DisruptionTarget"}]}})");
  Answer(200);
  ASSERT_EQ(client_.waiting(), 1u);
  EXPECT_EQ(client_.request().method, Method::kDelete);
  EXPECT_EQ(client_.request().path, "/api/v1/namespaces/ns/pods/v");
  EXPECT_EQ(client_.request().body,
            R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"uid-v"}})");
  EXPECT_THAT(results_, IsEmpty());
  Answer(200);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0].outcome, EvictionOutcome::kEvicted);
  EXPECT_EQ(evictor_->pending(), 0u);
}

TEST_F(PodEvictorTest, AConditionThatIsThereIsNotWrittenAgain) {
  Evict("v", /*condition_is_set=*/true);
  EXPECT_EQ(client_.request().method, Method::kDelete);
}

TEST_F(PodEvictorTest, AMissingPodIsNotAFailure) {
  Evict("a");
  Answer(404);
  Evict("b");
  Answer(200);
  Answer(404);
  Evict("c");
  Answer(200);
  Answer(409, R"({"kind":"Status","message":"Operation cannot be fulfilled on pods \"c\": )"
              R"(Precondition failed: UID in precondition: uid-c, UID in object meta: uid-d"})");
  Evict("d");
  Answer(422, R"({"kind":"Status","message":"Pod \"d\" is invalid: metadata.uid: )"
              R"(Invalid value: \"uid-d\": field is immutable"})");
  EXPECT_EQ(client_.waiting(), 0u);  // a recreated pod is not deleted
  ASSERT_THAT(results_, SizeIs(4));
  for (const EvictionResult& result : results_) {
    EXPECT_EQ(result.outcome, EvictionOutcome::kGone) << result.message;
  }
}

TEST_F(PodEvictorTest, ARefusedDeletionIsAFailureAndIsNotRepeated) {
  Evict("v");
  Answer(200);
  Answer(403, R"({"kind":"Status","apiVersion":"v1","message":"pods \"v\" is forbidden"})");
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0].outcome, EvictionOutcome::kFailed);
  EXPECT_THAT(results_[0].message, HasSubstr("forbidden"));
  EXPECT_EQ(client_.waiting(), 0u);
}

TEST_F(PodEvictorTest, TheConditionIsTriedFourTimes) {
  Evict("v");
  for (int i = 0; i < 3; ++i) {
    Answer(503);
    EXPECT_EQ(client_.waiting(), 0u);
    now_ = evictor_->NextTick();
    evictor_->Tick(now_);
    ASSERT_EQ(client_.waiting(), 1u);
  }
  Answer(503);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0].outcome, EvictionOutcome::kFailed);
}

TEST_F(PodEvictorTest, NothingIsSentOnceTheLeaseMayBeAnothers) {
  Evict("v");
  fence_ = now_;
  Answer(200);
  ASSERT_THAT(results_, SizeIs(1));
  EXPECT_EQ(results_[0].outcome, EvictionOutcome::kFailed);
  EXPECT_THAT(results_[0].message, HasSubstr("lease"));
}

TEST_F(PodEvictorTest, NotMoreThanItMayAreUnderWay) {
  for (const char* name : {"a", "b", "c"}) Evict(name);
  EXPECT_EQ(client_.waiting(), 2u);
  EXPECT_EQ(evictor_->pending(), 3u);
  // An eviction in progress is finished first.
  Answer(200);
  EXPECT_EQ(client_.waiting(), 2u);
  EXPECT_EQ(client_.request(1).method, Method::kDelete);
}

}  // namespace
}  // namespace outboard::bind
