// The trace context that a host receives with each call.
#include "shim/hosts/attempt_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using ::testing::ElementsAre;

constexpr char kUid[] = "0af76519-16cd-43dd-8448-eb211c80319c";
constexpr char kAttempt3[] = "00-0af7651916cd43dd8448eb211c80319c-0000000000000003-01";
constexpr char kAttempt4[] = "00-0af7651916cd43dd8448eb211c80319c-0000000000000004-01";

template <typename Request>
Request About(uint64_t attempt_id) {
  Request request;
  request.mutable_header()->set_attempt_id(attempt_id);
  return request;
}
template <typename Request>
Request AboutPod(uint64_t attempt_id) {
  Request request = About<Request>(attempt_id);
  request.set_pod_uid(kUid);
  return request;
}

PlanRequest CycleOf(uint64_t attempt_id) {
  PlanRequest request;
  *request.mutable_cycle() = AboutPod<CycleRequest>(attempt_id);
  return request;
}

class AttemptTraceTest : public ::testing::Test {
 protected:
  AttemptTraceTest()
      : host_(testing::FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "outboard-traced-", getpid()))),
        client_(&loop_, "session",
                *Handshake(NewHostChannel(host_->address()), absl::Seconds(10))) {}
  static absl::Time Soon() { return SteadyNow() + absl::Seconds(30); }
  template <typename Request>
  std::string Received() const {
    const std::vector<std::string> all = host_->TraceParents<Request>();
    return all.size() == 1 ? all[0] : absl::StrCat(all.size(), " requests");
  }

  std::unique_ptr<testing::FakeHost> host_;
  HostLoop loop_;
  GrpcHostClient client_;
};

TEST_F(AttemptTraceTest, EveryCallAboutAnAttemptHasIt) {
  EXPECT_TRUE(client_.PreFilter(AboutPod<PreFilterRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Filter(About<FilterRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.PostFilter(About<PostFilterRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.PreScore(About<PreScoreRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Score(About<ScoreRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Reserve(AboutPod<ReserveRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Unreserve(AboutPod<UnreserveRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Permit(AboutPod<PermitRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.PreBind(AboutPod<PreBindRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Bind(AboutPod<BindRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.SendPostBind(AboutPod<PostBindRequest>(3), Soon()));
  const absl::Time limit = Soon();
  while (host_->Count<PostBindRequest>() == 0 && SteadyNow() < limit)
    loop_.Wait(SteadyNow() + absl::Milliseconds(10));
  EXPECT_EQ(Received<PreFilterRequest>(), kAttempt3);
  EXPECT_EQ(Received<FilterRequest>(), kAttempt3);
  EXPECT_EQ(Received<PostFilterRequest>(), kAttempt3);
  EXPECT_EQ(Received<PreScoreRequest>(), kAttempt3);
  EXPECT_EQ(Received<ScoreRequest>(), kAttempt3);
  EXPECT_EQ(Received<ReserveRequest>(), kAttempt3);
  EXPECT_EQ(Received<UnreserveRequest>(), kAttempt3);
  EXPECT_EQ(Received<PermitRequest>(), kAttempt3);
  EXPECT_EQ(Received<PreBindRequest>(), kAttempt3);
  EXPECT_EQ(Received<BindRequest>(), kAttempt3);
  EXPECT_EQ(Received<PostBindRequest>(), kAttempt3);
}

// A host that only places groups has no other call about the attempt.
TEST_F(AttemptTraceTest, CallsAboutAGroupHaveThatOfItsFirstPod) {
  auto generate = About<GeneratePlacementsRequest>(3);
  generate.mutable_group()->add_pod_uids(kUid);
  generate.mutable_group()->add_pod_uids("another");
  auto score = About<ScorePlacementsRequest>(3);
  *score.mutable_group() = generate.group();
  const auto generated = client_.GeneratePlacements(generate, Soon());
  ASSERT_TRUE(generated.ok()) << generated.status();
  EXPECT_TRUE(generated->has_any());
  EXPECT_TRUE(client_.ScorePlacements(score, Soon()).ok());
  EXPECT_EQ(Received<GeneratePlacementsRequest>(), kAttempt3);
  EXPECT_EQ(Received<ScorePlacementsRequest>(), kAttempt3);
}

TEST_F(AttemptTraceTest, CallsInParallelHaveIt) {
  EXPECT_TRUE(client_.Start(AboutPod<PreFilterRequest>(3), Soon())().ok());
  auto filter = client_.Start(About<FilterRequest>(3), Soon());
  auto score = client_.Start(About<ScoreRequest>(3), Soon());
  EXPECT_TRUE(filter().ok());
  EXPECT_TRUE(score().ok());
  EXPECT_EQ(Received<FilterRequest>(), kAttempt3);
  EXPECT_EQ(Received<ScoreRequest>(), kAttempt3);
}

TEST_F(AttemptTraceTest, CallsAboutSeveralPodsAndStreamsHaveNone) {
  SortKeysRequest sort_keys;
  sort_keys.add_pod_uids(kUid);
  EXPECT_TRUE(client_.SortKeys(sort_keys, Soon()).ok());
  PreEnqueueRequest pre_enqueue;
  pre_enqueue.add_pod_uids(kUid);
  EXPECT_TRUE(client_.PreEnqueue(pre_enqueue, Soon()).ok());
  PlanResponse response;
  EXPECT_TRUE(client_.Cycle(CycleOf(3), Soon(), &response).ok());
  EXPECT_EQ(Received<SortKeysRequest>(), "");
  EXPECT_EQ(Received<PreEnqueueRequest>(), "");
  EXPECT_EQ(Received<CycleRequest>(), "");
}

TEST_F(AttemptTraceTest, APostFilterAfterACycleHasIt) {
  PlanResponse response;
  ASSERT_TRUE(client_.Cycle(CycleOf(3), Soon(), &response).ok());
  EXPECT_TRUE(client_.PostFilter(About<PostFilterRequest>(3), Soon()).ok());
  EXPECT_EQ(Received<PostFilterRequest>(), kAttempt3);
}

TEST_F(AttemptTraceTest, ACallIsNotCountedToAnotherAttempt) {
  EXPECT_TRUE(client_.PreFilter(AboutPod<PreFilterRequest>(3), Soon()).ok());
  EXPECT_TRUE(client_.Filter(About<FilterRequest>(4), Soon()).ok());
  // The binding cycle of an earlier attempt.
  EXPECT_TRUE(client_.Reserve(AboutPod<ReserveRequest>(4), Soon()).ok());
  EXPECT_TRUE(client_.Filter(About<FilterRequest>(3), Soon()).ok());
  EXPECT_THAT(host_->TraceParents<FilterRequest>(), ElementsAre("", kAttempt3));
  EXPECT_EQ(Received<ReserveRequest>(), kAttempt4);
}

TEST(AttemptTrace, WithoutAnAttemptOrAPodThereIsNone) {
  AttemptTrace trace;
  EXPECT_EQ(trace.Of(FilterRequest()).text(), "");
  EXPECT_EQ(trace.Of(AboutPod<PreFilterRequest>(0)).text(), "");
  EXPECT_EQ(trace.Of(About<ReserveRequest>(3)).text(), "");
  trace.Begin(About<PreFilterRequest>(0).header(), kUid);
  EXPECT_EQ(trace.Of(FilterRequest()).text(), "");
}

// A host with inline nodes may have no PreFilter.
TEST(AttemptTrace, ThePodOfTheCallCounts) {
  const AttemptTrace trace;
  FilterRequest request = About<FilterRequest>(3);
  request.mutable_pod()->set_uid(kUid);
  EXPECT_EQ(trace.Of(request).text(), kAttempt3);
}

}  // namespace
}  // namespace outboard::hosts
