#include "proto/testing/fake_host.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <thread>

#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/cycle.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plan.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::testing {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.

class FakeHostTest : public ::testing::Test {
 protected:
  FakeHostTest()
      : host_(FakeHost::Start("127.0.0.1:0")),
        channel_(grpc::CreateChannel(host_->address(), grpc::InsecureChannelCredentials())) {}

  static CallError ErrorOf(const grpc::Status& status) {
    const auto error = call_errors::CallErrorOf(status);
    EXPECT_TRUE(error.has_value()) << status.error_message();
    return error.value_or(CallError());
  }

  std::unique_ptr<FakeHost> host_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
};

// A snapshot of `nodes` nodes at version 1.
std::vector<SyncRequest> Snapshot(int nodes) {
  std::vector<SyncRequest> requests(2);
  requests[0].set_session_id("s");
  requests[0].set_version(1);
  requests[0].set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
  for (int i = 0; i < nodes; ++i) {
    NodeUpsert* upsert = requests[0].add_changes()->mutable_node_upsert();
    upsert->set_slot(i);
    upsert->mutable_node()->set_name("n" + std::to_string(i));
  }
  requests[1].set_version(1);
  requests[1].set_phase(SyncRequest::PHASE_SNAPSHOT_END);
  return requests;
}

TEST_F(FakeHostTest, ReportsItsIdentity) {
  GetHostInfoResponse info;
  ASSERT_TRUE(PluginHostService::NewStub(channel_)
                  ->GetHostInfo(&context_, GetHostInfoRequest(), &info)
                  .ok());
  EXPECT_THAT(info.capabilities(), ::testing::ElementsAre(CAPABILITY_FUSED_CYCLE));
  EXPECT_EQ(host_->Count<GetHostInfoRequest>(), 1);
}

TEST_F(FakeHostTest, FaultsComeInOrderAndEnd) {
  host_->Inject<FilterRequest>(
      {.status = CallFailure(CallError::REASON_STALE, "behind", 7), .after = 1});
  auto stub = FilterService::NewStub(channel_);
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    FilterRequest request;
    request.mutable_search()->mutable_nodes()->add_slots(i);
    FilterResponse response;
    const grpc::Status status = stub->Filter(&context, request, &response);
    if (i == 1) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
      EXPECT_EQ(ErrorOf(status).reason(), CallError::REASON_STALE);
      EXPECT_EQ(ErrorOf(status).have_version(), 7);
    } else {
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(response.processed(), 1u);
      EXPECT_EQ(response.feasible(), std::string(1, '\1'));
    }
  }
  const auto requests = host_->Requests<FilterRequest>();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].search().nodes().slots(0), 2u);
}

TEST_F(FakeHostTest, DelayOutlastsADeadline) {
  host_->Inject<PermitRequest>({.delay = absl::Minutes(1)});
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
  PermitResponse response;
  const grpc::Status status =
      PermitService::NewStub(channel_)->Permit(&context_, PermitRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(FakeHostTest, AcknowledgementsAndPushesOfTheCache) {
  auto stub = ClusterStateService::NewStub(channel_);
  auto stream = stub->Sync(&context_);
  for (const SyncRequest& request : Snapshot(3)) ASSERT_TRUE(stream->Write(request));
  SyncResponse push;
  ASSERT_TRUE(stream->Read(&push));
  EXPECT_EQ(push.ack().version(), 1);
  EXPECT_EQ(host_->version(), 1);
  EXPECT_EQ(host_->nodes().at(2).name(), "n2");

  SyncResponse decision;
  decision.mutable_wait_decision()->set_pod_uid("u");
  EXPECT_TRUE(host_->Push(decision));
  ASSERT_TRUE(stream->Read(&push));
  EXPECT_EQ(push.wait_decision().pod_uid(), "u");

  SyncRequest answer;
  answer.set_version(1);
  answer.set_phase(SyncRequest::PHASE_DELTA);
  answer.add_push_results()->set_push_id(7);
  ASSERT_TRUE(stream->Write(answer));
  ASSERT_TRUE(stream->Read(&push));  // Acknowledged once it was applied.
  ASSERT_THAT(host_->push_results(), ::testing::SizeIs(1));
  EXPECT_EQ(host_->push_results()[0].push_id(), 7u);

  host_->CutStreams();
  EXPECT_FALSE(stream->Read(&push));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(FakeHostTest, CycleIsMadeOfThePlainAnswers) {
  host_->Answer<FilterRequest, FilterResponse>([](const FilterRequest&, FilterResponse* response) {
    response->set_processed(9);
    response->set_feasible(std::string("\x03\x01", 2));
    return grpc::Status::OK;
  });
  host_->Inject<CycleRequest>(
      {.status = CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "who?"), .after = 1});
  host_->Inject<CycleRequest>(
      {.status = grpc::Status(grpc::StatusCode::UNKNOWN, "boom"), .cut_stream = true});
  auto stub = CycleService::NewStub(channel_);
  auto stream = stub->Cycle(&context_);
  CycleRequest request;
  request.mutable_header()->set_attempt_id(5);
  CycleResponse response;

  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.attempt_id(), 5u);
  EXPECT_EQ(response.evaluation().filter().processed(), 9u);
  EXPECT_EQ(response.evaluation().score().plugins(0).scores(), "222");

  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().reason(), CallError::REASON_ATTEMPT_UNKNOWN);

  ASSERT_TRUE(stream->Write(request));
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_message(), "boom");
}

TEST_F(FakeHostTest, PlanAnswersAsCycle) {
  host_->Answer<CycleRequest, CycleResponse>(
      [](const CycleRequest& request, CycleResponse* response) {
        response->set_attempt_id(request.header().attempt_id());
        response->mutable_evaluation()->mutable_filter()->set_processed(7);
        return grpc::Status::OK;
      });
  host_->Inject<PlanRequest>(
      {.status = CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "who?"), .after = 1});
  auto stub = PlanService::NewStub(channel_);
  auto stream = stub->Plan(&context_);
  PlanRequest request;
  request.mutable_cycle()->mutable_header()->set_attempt_id(5);
  PlanResponse response;

  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.attempt_id(), 5u);
  EXPECT_EQ(response.evaluation().filter().processed(), 7u);

  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.attempt_id(), 5u);
  EXPECT_EQ(response.error().reason(), CallError::REASON_ATTEMPT_UNKNOWN);
  EXPECT_EQ(host_->Count<PlanRequest>(), 2);
  EXPECT_EQ(host_->Count<CycleRequest>(), 0);
}

TEST_F(FakeHostTest, KilledInTheMiddleOfACall) {
  host_->Inject<PermitRequest>({.delay = absl::Minutes(1)});
  std::thread killer([this] {
    while (host_->Count<PermitRequest>() == 0) std::this_thread::yield();
    host_->Kill();
  });
  PermitResponse response;
  EXPECT_FALSE(
      PermitService::NewStub(channel_)->Permit(&context_, PermitRequest(), &response).ok());
  killer.join();
}

}  // namespace
}  // namespace outboard::testing
