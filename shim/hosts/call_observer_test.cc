// What is observed about the calls of a host.
#include "shim/hosts/call_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using ::testing::AllOf;
using testing::CallFailure;
using ::testing::ElementsAre;
using testing::Fault;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

class Record final : public CallObserver {
 public:
  void OnCallEnded(Call call, absl::StatusCode code, absl::Duration elapsed) override {
    ended.push_back(
        absl::StrCat(kCallNames[static_cast<size_t>(call)], " ", absl::StatusCodeToString(code)));
    durations.push_back(elapsed);
  }
  void OnEvaluated(Call call, absl::Duration evaluation) override {
    EXPECT_EQ(call, Call::kCycle);
    evaluations.push_back(evaluation);
  }

  std::vector<std::string> ended;
  std::vector<absl::Duration> durations;
  std::vector<absl::Duration> evaluations;
};

class CallObserverTest : public ::testing::Test {
 protected:
  CallObserverTest()
      : host_(testing::FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "outboard-observed-", getpid()))),
        client_(&loop_, "session",
                *Handshake(NewHostChannel(host_->address()), absl::Seconds(10))) {
    client_.SetCallObserver(&record_);
  }
  static absl::Time Soon() { return SteadyNow() + absl::Seconds(30); }
  absl::Status Cycle(absl::Time deadline = Soon()) {
    PlanRequest request;
    request.mutable_cycle()->mutable_header()->set_attempt_id(++attempt_);
    return client_.Cycle(request, deadline, &response_);
  }
  // The host's account of its evaluation.
  void Accounts(int64_t micros) {
    host_->Answer<CycleRequest, CycleResponse>(
        [micros](const CycleRequest& request, CycleResponse* response) {
          response->set_attempt_id(request.header().attempt_id());
          response->set_evaluation_micros(micros);
          return grpc::Status::OK;
        });
  }

  std::unique_ptr<testing::FakeHost> host_;
  HostLoop loop_;
  Record record_;
  GrpcHostClient client_;
  PlanResponse response_;
  uint64_t attempt_ = 0;
};

TEST_F(CallObserverTest, EveryCallIsObservedOnce) {
  EXPECT_TRUE(Cycle().ok());
  EXPECT_TRUE(client_.PreFilter(PreFilterRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Filter(FilterRequest(), Soon()).ok());
  EXPECT_TRUE(client_.PostFilter(PostFilterRequest(), Soon()).ok());
  EXPECT_TRUE(client_.PreScore(PreScoreRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Score(ScoreRequest(), Soon()).ok());
  EXPECT_TRUE(client_.SortKeys(SortKeysRequest(), Soon()).ok());
  EXPECT_TRUE(client_.PreEnqueue(PreEnqueueRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Reserve(ReserveRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Unreserve(UnreserveRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Permit(PermitRequest(), Soon()).ok());
  EXPECT_TRUE(client_.PreBind(PreBindRequest(), Soon()).ok());
  EXPECT_TRUE(client_.Bind(BindRequest(), Soon()).ok());
  EXPECT_TRUE(client_.SendPostBind(PostBindRequest(), Soon()));
  EXPECT_EQ(record_.ended.back(), "Bind OK") << "the caller does not wait for PostBind";
  while (record_.ended.back() != "PostBind OK") loop_.Wait(Soon());
  EXPECT_TRUE(client_.GeneratePlacements(GeneratePlacementsRequest(), Soon()).ok());
  EXPECT_TRUE(client_.ScorePlacements(ScorePlacementsRequest(), Soon()).ok());
  std::vector<std::string> all;
  for (const char* name : kCallNames) all.push_back(absl::StrCat(name, " OK"));
  EXPECT_EQ(record_.ended, all);
  EXPECT_THAT(record_.evaluations, SizeIs(1));
}

TEST_F(CallObserverTest, CallsInParallelAreObservedWhenTheirAnswersArrive) {
  auto slow = client_.Start(FilterRequest(), Soon());
  auto fast = client_.Start(PreFilterRequest(), Soon());
  EXPECT_TRUE(fast().ok());
  EXPECT_TRUE(slow().ok());
  EXPECT_THAT(record_.ended, SizeIs(2));
  host_->Inject<ScoreRequest>({.delay = absl::Seconds(20)});
  record_.ended.clear();
  { auto dropped = client_.Start(ScoreRequest(), Soon()); }
  EXPECT_THAT(record_.ended, ElementsAre("Score CANCELLED"));
}

TEST_F(CallObserverTest, TheResultIsGrpcsCode) {
  host_->Inject<ReserveRequest>({.status = CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "no")});
  EXPECT_FALSE(client_.Reserve(ReserveRequest(), Soon()).ok());
  host_->Inject<PermitRequest>({.delay = absl::Seconds(20)});
  EXPECT_FALSE(client_.Permit(PermitRequest(), SteadyNow() + absl::Milliseconds(50)).ok());
  host_->Inject<CycleRequest>({.status = CallFailure(CallError::REASON_STALE, "no")});
  EXPECT_FALSE(Cycle().ok());
  host_->Inject<CycleRequest>({.delay = absl::Seconds(20)});
  EXPECT_FALSE(Cycle(SteadyNow() + absl::Milliseconds(50)).ok());
  EXPECT_THAT(record_.ended, ElementsAre("Reserve NOT_FOUND", "Permit DEADLINE_EXCEEDED",
                                         "Cycle FAILED_PRECONDITION", "Cycle DEADLINE_EXCEEDED"));
  EXPECT_GE(record_.durations[1], absl::Milliseconds(50));
  EXPECT_GE(record_.durations[3], absl::Milliseconds(50));
  EXPECT_THAT(record_.evaluations, IsEmpty()) << "nothing was evaluated";
}

TEST_F(CallObserverTest, TheHostsAccountIsBoundedByTheCall) {
  Accounts(1);
  EXPECT_TRUE(Cycle().ok());
  Accounts(4'000'000'000);
  EXPECT_TRUE(Cycle().ok());
  ASSERT_THAT(record_.evaluations, SizeIs(2));
  EXPECT_EQ(record_.evaluations[0], absl::Microseconds(1));
  EXPECT_EQ(record_.evaluations[1], record_.durations[1]);
  EXPECT_LT(record_.durations[1], absl::Seconds(30));
}

// Of an answer that did not come in time, an earlier one must not count again.
TEST_F(CallObserverTest, AnAccountCountsOnce) {
  Accounts(1);
  EXPECT_TRUE(Cycle().ok());
  host_->Inject<CycleRequest>({.delay = absl::Seconds(20)});
  EXPECT_FALSE(Cycle(SteadyNow() + absl::Milliseconds(50)).ok());
  EXPECT_THAT(record_.ended, SizeIs(2));
  EXPECT_THAT(record_.evaluations, SizeIs(1));
}

TEST_F(CallObserverTest, CyclesThatNoPodWaitsForAreNotObserved) {
  PlanRequest request;
  request.mutable_cycle()->mutable_header()->set_attempt_id(++attempt_);
  const absl::Time limit = Soon();
  while (!client_.StartCycle(request) && SteadyNow() < limit) loop_.Wait(limit);
  while (client_.cycle_under_way() && !client_.TakeCycle() && SteadyNow() < limit)
    loop_.Wait(limit);
  EXPECT_THAT(record_.ended, IsEmpty());
  client_.SetCallObserver(nullptr);
  EXPECT_TRUE(client_.Reserve(ReserveRequest(), Soon()).ok());
  EXPECT_THAT(record_.ended, IsEmpty());
}

}  // namespace
}  // namespace outboard::hosts
