// Many calls, deadline misses, cut streams and dead hosts against a real gRPC server; meant for the
// address sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_loop.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using testing::CallFailure;
using testing::FakeHost;

constexpr int kNodes = 100;

class GrpcHostClientStressTest : public ::testing::Test {
 protected:
  // A host at its own path, and a client whose snapshot the host acknowledged.
  void Connect() {
    client_.reset();
    host_.reset();
    ++hosts_;
    host_ = FakeHost::Start(
        absl::StrCat("unix:", ::testing::TempDir(), "outboard-stress-", getpid(), "-", hosts_),
        absl::StrCat("fake-", hosts_));
    ASSERT_NE(host_, nullptr);
    const auto host = Handshake(NewHostChannel(host_->address()), absl::Seconds(10));
    ASSERT_TRUE(host.ok()) << host.status();
    client_ = std::make_unique<GrpcHostClient>(&loop_, "session", *host);
    ASSERT_TRUE(client_->Configure(ConfigureRequest(), Soon()).ok());
    version_ = 1;
    SyncRequest snapshot;
    snapshot.set_version(version_);
    snapshot.set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (int i = 0; i < kNodes; ++i) snapshot.add_changes()->mutable_node_upsert()->set_slot(i);
    client_->AwaitSnapshot(version_);
    client_->SendChanges(snapshot);
    SyncRequest end;
    end.set_version(version_);
    end.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
    client_->SendChanges(end);
    const absl::Time limit = Soon();
    while (!client_->usable() && SteadyNow() < limit) loop_.Wait(limit);
    ASSERT_TRUE(client_->usable());
  }

  static absl::Time Soon() { return SteadyNow() + absl::Seconds(30); }

  void SendDelta() {
    SyncRequest delta;
    delta.set_phase(SyncRequest::PHASE_DELTA);
    delta.set_version(++version_);
    delta.add_changes()->mutable_pod_upsert()->mutable_pod()->set_uid(
        absl::StrCat("pod-", version_ % 50));
    client_->SendChanges(delta);
  }

  PlanRequest NextCycle() {
    PlanRequest request;
    CycleRequest& cycle = *request.mutable_cycle();
    cycle.mutable_header()->set_attempt_id(++attempt_);
    cycle.mutable_header()->set_exact_version(version_);
    cycle.set_pod_uid("pod");
    return request;
  }

  // A cycle that must succeed with the right answer.
  void ExpectAnswer() {
    const absl::Status status = client_->Cycle(NextCycle(), Soon(), &response_);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(response_.attempt_id(), attempt_);
    EXPECT_EQ(response_.evaluation().filter().processed(), static_cast<uint32_t>(kNodes));
    EXPECT_EQ(response_.evaluation().score().plugins(0).scores().size(),
              static_cast<size_t>(kNodes));
  }

  // The loop outlives the client; the host is deleted last.
  std::unique_ptr<FakeHost> host_;
  HostLoop loop_;
  std::unique_ptr<GrpcHostClient> client_;
  PlanResponse response_;
  int hosts_ = 0;
  int64_t version_ = 0;
  uint64_t attempt_ = 0;
};

TEST_F(GrpcHostClientStressTest, CyclesBetweenFaultsOfEveryKind) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  std::mt19937 random(20261121);
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(absl::StrCat("step ", i));
    switch (random() % 40) {
      case 0: {  // Too late: no answer, and the late answer is never taken for the next one's.
        host_->Inject<CycleRequest>({.delay = absl::Seconds(60)});
        const absl::Status status =
            client_->Cycle(NextCycle(), SteadyNow() + absl::Milliseconds(3), &response_);
        EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
        host_->ClearFaults();
        break;
      }
      case 1: {  // Refused with a reason.
        host_->Inject<CycleRequest>({.status = CallFailure(CallError::REASON_STALE, "behind")});
        const absl::Status status = client_->Cycle(NextCycle(), Soon(), &response_);
        EXPECT_EQ(framework::CallErrorReason(status), CallError::REASON_STALE) << status;
        break;
      }
      case 2: {  // The stream breaks, the host lives.
        host_->Inject<CycleRequest>({.cut_stream = true});
        EXPECT_FALSE(client_->Cycle(NextCycle(), Soon(), &response_).ok());
        EXPECT_FALSE(client_->lost());
        break;
      }
      case 3: {  // The answer to another question.
        host_->Answer<CycleRequest, CycleResponse>(
            [](const CycleRequest& request, CycleResponse* response) {
              response->set_attempt_id(request.header().attempt_id() + 1);
              return grpc::Status::OK;
            });
        EXPECT_EQ(client_->Cycle(NextCycle(), Soon(), &response_).code(),
                  absl::StatusCode::kInternal);
        host_->Answer<CycleRequest, CycleResponse>(nullptr);
        break;
      }
      case 4: {  // Plain calls, good and bad.
        FilterRequest filter;
        filter.mutable_header()->set_attempt_id(attempt_);
        EXPECT_EQ(client_->Filter(filter, Soon())->processed(), static_cast<uint32_t>(kNodes));
        host_->Inject<PermitRequest>(
            {.status = CallFailure(CallError::REASON_ATTEMPT_UNKNOWN, "who?")});
        EXPECT_EQ(framework::CallErrorReason(client_->Permit(PermitRequest(), Soon()).status()),
                  CallError::REASON_ATTEMPT_UNKNOWN);
        host_->Inject<ReserveRequest>({.delay = absl::Seconds(60)});
        EXPECT_EQ(
            client_->Reserve(ReserveRequest(), SteadyNow() + absl::Milliseconds(3)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
        break;
      }
      case 5: {  // A push is seen by the idle loop.
        SyncResponse push;
        push.mutable_wait_decision()->set_attempt_id(i);
        ASSERT_TRUE(host_->Push(push));
        std::vector<SyncResponse> pushes;
        const absl::Time limit = Soon();
        while ((pushes = client_->TakePushes()).empty() && SteadyNow() < limit) loop_.Wait(limit);
        ASSERT_EQ(pushes.size(), 1u);
        EXPECT_EQ(pushes[0].wait_decision().attempt_id(), static_cast<uint64_t>(i));
        break;
      }
      case 6: {  // Woken from another thread, while it sleeps or before.
        std::thread waker([this] { loop_.Wake(); });
        loop_.Wait(SteadyNow() + absl::Milliseconds(50));
        waker.join();
        break;
      }
      case 7:
        if (random() % 4 == 0) {  // Another instance takes over.
          ASSERT_NO_FATAL_FAILURE(Connect());
        }
        break;
      default:
        if (random() % 2 == 0) SendDelta();
        ASSERT_NO_FATAL_FAILURE(ExpectAnswer());
    }
  }
}

TEST_F(GrpcHostClientStressTest, HostsDieInTheMiddleOfCalls) {
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(absl::StrCat("host ", i));
    ASSERT_NO_FATAL_FAILURE(Connect());
    ASSERT_NO_FATAL_FAILURE(ExpectAnswer());
    // Two of three hosts die during a call, the others while changes and calls are in flight.
    const bool in_a_call = i % 3 != 0;
    const int calls = static_cast<int>(random() % 10);
    if (in_a_call) host_->Inject<CycleRequest>({.delay = absl::Seconds(60), .after = calls});
    const int hanging = host_->Count<CycleRequest>() + calls + 1;
    std::thread killer([this, in_a_call, hanging] {
      while (in_a_call && host_->Count<CycleRequest>() < hanging) std::this_thread::yield();
      host_->Kill();
    });
    const absl::Time limit = Soon();
    bool failed = false;
    while (!client_->lost() && SteadyNow() < limit) {
      SendDelta();
      if (!client_->Cycle(NextCycle(), limit, &response_).ok()) failed = true;
      loop_.RunReady();
    }
    killer.join();
    EXPECT_TRUE(client_->lost());
    EXPECT_FALSE(client_->usable());
    EXPECT_FALSE(client_->Permit(PermitRequest(), limit).ok());
    EXPECT_EQ(client_->Cycle(NextCycle(), limit, &response_).code(),
              absl::StatusCode::kUnavailable);
    EXPECT_TRUE(failed || !in_a_call);
  }
}

TEST_F(GrpcHostClientStressTest, ClientsGoWhileOperationsAreInFlight) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    host_->Inject<CycleRequest>({.delay = absl::Seconds(60)});
    for (int k = 0; k < i % 5; ++k) SendDelta();
    if (i % 2 == 0) {
      EXPECT_FALSE(
          client_->Cycle(NextCycle(), SteadyNow() + absl::Milliseconds(i % 7), &response_).ok());
    }
    if (i % 3 == 0) host_->CutStreams();
    client_.reset();
    if (i % 4 == 0) loop_.RunReady();
  }
}

}  // namespace
}  // namespace outboard::hosts
