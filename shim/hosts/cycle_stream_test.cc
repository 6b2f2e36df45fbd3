// Which of the two streams of the fast path a host gets, and that both answer alike.
#include "shim/hosts/cycle_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/framework/host_client.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using testing::CallFailure;
using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::IsEmpty;

class CycleStreamTest : public ::testing::Test {
 protected:
  void Connect(const std::vector<Capability>& capabilities) {
    HostConnection connection;
    connection.channel = NewHostChannel(host_->address());
    connection.identity.set_instance(host_->instance());
    for (const Capability capability : capabilities) connection.info.add_capabilities(capability);
    client_ = std::make_unique<GrpcHostClient>(&loop_, "session", std::move(connection));
  }
  static absl::Time Soon() { return SteadyNow() + absl::Seconds(30); }
  PlanRequest Next() {
    PlanRequest request;
    request.mutable_cycle()->mutable_header()->set_attempt_id(++attempt_);
    request.mutable_cycle()->set_pod_uid("pod");
    request.add_next_pod_uids("next");
    return request;
  }
  absl::Status Cycle() { return client_->Cycle(Next(), Soon(), &response_); }
  // An evaluation, a rejection and an error: each replaces the one before in the same message.
  void ExpectOutcomes() {
    ASSERT_TRUE(Cycle().ok());
    EXPECT_EQ(response_.attempt_id(), attempt_);
    EXPECT_GT(response_.evaluation_micros(), 0u);
    EXPECT_TRUE(response_.evaluation().has_filter());
    host_->Answer<PreFilterRequest, PreFilterResponse>(
        [](const PreFilterRequest& request, PreFilterResponse* response) {
          response->mutable_rejection()->add_reasons(request.pod_uid());
          return grpc::Status::OK;
        });
    ASSERT_TRUE(Cycle().ok());
    EXPECT_THAT(response_.rejection().pre_filter().rejection().reasons(), ElementsAre("pod"));
    EXPECT_FALSE(response_.rejection().has_group());
    host_->Answer<PreFilterRequest, PreFilterResponse>(
        [](const PreFilterRequest&, PreFilterResponse*) {
          return CallFailure(CallError::REASON_STALE, "behind");
        });
    EXPECT_EQ(framework::CallErrorReason(Cycle()), CallError::REASON_STALE);
    host_->Answer<PreFilterRequest, PreFilterResponse>(nullptr);
    ASSERT_TRUE(Cycle().ok());
    EXPECT_TRUE(response_.has_evaluation());
  }

  const std::unique_ptr<FakeHost> host_ = FakeHost::Start(
      absl::StrCat("unix:", ::testing::TempDir(), "outboard-cycle-stream-", getpid()));
  HostLoop loop_;
  std::unique_ptr<GrpcHostClient> client_;
  PlanResponse response_;
  uint64_t attempt_ = 0;
};

TEST_F(CycleStreamTest, AHostThatDoesNotPlanGetsOnlyTheCycle) {
  Connect({CAPABILITY_FUSED_CYCLE});
  ExpectOutcomes();
  EXPECT_EQ(host_->Count<PlanRequest>(), 0);
  const std::vector<CycleRequest> asked = host_->Requests<CycleRequest>();
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_EQ(asked[0].pod_uid(), "pod");
  EXPECT_EQ(asked[0].header().session_id(), "session");
  EXPECT_THAT(asked[1].header().session_id(), IsEmpty());
}

TEST_F(CycleStreamTest, AHostThatPlansGetsOnlyPlans) {
  for (const Capability plans : {CAPABILITY_BATCH, CAPABILITY_GROUP_PLAN}) {
    Connect({CAPABILITY_FUSED_CYCLE, plans});
    ExpectOutcomes();
    const std::vector<PlanRequest> asked = host_->Requests<PlanRequest>();
    ASSERT_GE(asked.size(), 4u);
    const PlanRequest& first = asked[asked.size() - 4];
    EXPECT_THAT(first.next_pod_uids(), ElementsAre("next"));
    EXPECT_EQ(first.cycle().header().session_id(), "session");
    EXPECT_THAT(asked.back().cycle().header().session_id(), IsEmpty());
  }
  EXPECT_EQ(host_->Count<CycleRequest>(), 0) << "never both streams";
}

TEST_F(CycleStreamTest, APlanArrivesAsItIs) {
  host_->Answer<PlanRequest, PlanResponse>([](const PlanRequest& request, PlanResponse* response) {
    response->set_attempt_id(request.cycle().header().attempt_id());
    response->mutable_plan()->add_placements()->set_pod_uid(request.cycle().pod_uid());
    response->mutable_plan()->add_placements()->set_pod_uid(request.next_pod_uids(0));
    response->mutable_plan()->mutable_group()->set_name("group");
    return grpc::Status::OK;
  });
  Connect({CAPABILITY_FUSED_CYCLE, CAPABILITY_BATCH});
  ASSERT_TRUE(Cycle().ok());
  ASSERT_EQ(response_.plan().placements_size(), 2);
  EXPECT_EQ(response_.plan().placements(1).pod_uid(), "next");
  EXPECT_EQ(response_.plan().group().name(), "group");
  // Also if the scheduler does not wait for it.
  const absl::Time limit = Soon();
  while (!client_->StartCycle(Next()) && SteadyNow() < limit) loop_.Wait(limit);
  std::optional<absl::StatusOr<PlanResponse>> answer;
  while (!(answer = client_->TakeCycle()).has_value() && SteadyNow() < limit) loop_.Wait(limit);
  ASSERT_TRUE(answer.has_value() && answer->ok());
  EXPECT_EQ((*answer)->plan().placements_size(), 2);
}

TEST_F(CycleStreamTest, AnAnswerOfCycleHasNoPlan) {
  // Of a host that knows an earlier contract, in which Cycle planned.
  host_->Answer<CycleRequest, CycleResponse>(
      [](const CycleRequest& request, CycleResponse* response) {
        PlanResponse plan;
        plan.set_attempt_id(request.header().attempt_id());
        plan.mutable_plan()->add_placements()->set_pod_uid("pod");
        response->ParseFromString(plan.SerializeAsString());
        return grpc::Status::OK;
      });
  Connect({CAPABILITY_FUSED_CYCLE});
  EXPECT_EQ(framework::CallCycle(client_.get(), Next(), Soon(), &response_).code(),
            absl::StatusCode::kInternal);
  EXPECT_FALSE(response_.has_plan());
}

}  // namespace
}  // namespace outboard::hosts
