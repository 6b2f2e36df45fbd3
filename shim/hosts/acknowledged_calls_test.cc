// Calls to a host that acknowledges every version begin once it has acknowledged all changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/framework/host_client.h"
#include "shim/hosts/grpc_host_client.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using testing::FakeHost;
using testing::Fault;

class AcknowledgedCallsTest : public ::testing::Test {
 protected:
  AcknowledgedCallsTest() {
    HostConnection connection;
    connection.channel = NewHostChannel(host_->address());
    connection.identity.set_instance(host_->instance());
    connection.info.add_capabilities(CAPABILITY_ACKS_EVERY_VERSION);
    client_ = std::make_unique<GrpcHostClient>(&loop_, "session", std::move(connection));
    EXPECT_TRUE(client_->Configure(ConfigureRequest(), Soon()).ok());
    Send(1, SyncRequest::PHASE_SNAPSHOT_BEGIN);
    Send(1, SyncRequest::PHASE_SNAPSHOT_END);
    client_->AwaitSnapshot(1);
    while (!client_->usable() && SteadyNow() < Soon()) loop_.Wait(Soon());
  }
  static absl::Time Soon() { return SteadyNow() + absl::Seconds(30); }
  void Send(int64_t version, SyncRequest::Phase phase = SyncRequest::PHASE_DELTA) {
    SyncRequest request;
    request.set_version(version);
    request.set_phase(phase);
    client_->SendChanges(request);
  }
  absl::Status PreFilter(absl::Time deadline) {
    PreFilterRequest request;
    request.mutable_header()->set_attempt_id(1);
    return client_->PreFilter(request, deadline).status();
  }

  const std::unique_ptr<FakeHost> host_ = FakeHost::Start(
      absl::StrCat("unix:", ::testing::TempDir(), "outboard-acknowledged-", getpid()));
  HostLoop loop_;
  std::unique_ptr<GrpcHostClient> client_;
};

TEST_F(AcknowledgedCallsTest, ACallWaitsForTheChangesBeforeIt) {
  int64_t seen = 0;
  host_->Answer<PreFilterRequest, PreFilterResponse>(
      [&](const PreFilterRequest&, PreFilterResponse*) {
        seen = host_->version();
        return grpc::Status::OK;
      });
  Fault slow;
  slow.delay = absl::Milliseconds(200);
  host_->Inject<SyncRequest>(slow);
  Send(2);
  EXPECT_EQ(PreFilter(Soon()), absl::OkStatus());
  EXPECT_EQ(seen, 2);
}

TEST_F(AcknowledgedCallsTest, WithoutAnAcknowledgementTheCallIsStaleAndNotSent) {
  host_->StopAcknowledging();
  Send(2);
  const absl::Status unanswered = PreFilter(SteadyNow() + absl::Milliseconds(100));
  EXPECT_EQ(framework::CallErrorReason(unanswered), CallError::REASON_STALE) << unanswered;
  PlanRequest cycle;
  PlanResponse response;
  EXPECT_EQ(framework::CallErrorReason(
                client_->Cycle(cycle, SteadyNow() + absl::Milliseconds(100), &response)),
            CallError::REASON_STALE);
  EXPECT_FALSE(client_->StartCycle(cycle));
  EXPECT_EQ(host_->Count<PreFilterRequest>(), 0);
  EXPECT_EQ(host_->Count<CycleRequest>(), 0);
}

}  // namespace
}  // namespace outboard::hosts
