#include "shim/hosts/adapter/adapter.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "outboard/handshake/v1/handshake.grpc.pb.h"
#include "outboard/v1alpha1/cluster_state.grpc.pb.h"
#include "outboard/v1alpha1/filter.grpc.pb.h"
#include "outboard/v1alpha1/plugin_host.grpc.pb.h"
#include "outboard/v1beta1/cluster_state.grpc.pb.h"
#include "outboard/v1beta1/filter.grpc.pb.h"
#include "outboard/v1beta1/permit.grpc.pb.h"
#include "outboard/v1beta1/plugin_host.grpc.pb.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::hosts::adapter {
namespace {

using ::testing::ElementsAre;

// A host of version 0.1.
class OldHost {
 public:
  OldHost() : address_(absl::StrCat("unix:", ::testing::TempDir(), "outboard-old-", getpid())) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&info_);
    builder.RegisterService(&filter_);
    builder.RegisterService(&state_);
    server_ = builder.BuildAndStart();
  }
  std::shared_ptr<grpc::Channel> Connect() const {
    return grpc::CreateChannel(address_, grpc::InsecureChannelCredentials());
  }
  void Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

 private:
  class Info final : public v1alpha1::PluginHostService::Service {
    grpc::Status GetHostInfo(grpc::ServerContext*, const v1alpha1::GetHostInfoRequest*,
                             v1alpha1::GetHostInfoResponse* response) override {
      response->add_contract_versions("v1alpha1");
      response->set_host_instance("old-1");
      response->add_plugins()->set_name("Fit");
      return grpc::Status::OK;
    }
    grpc::Status Configure(grpc::ServerContext*, const v1alpha1::ConfigureRequest* request,
                           v1alpha1::ConfigureResponse* response) override {
      response->add_problems()->set_message("configured " + request->session_id());
      return grpc::Status::OK;
    }
    grpc::Status Drain(grpc::ServerContext*, const v1alpha1::DrainRequest* request,
                       v1alpha1::DrainResponse* response) override {
      response->set_attempts_in_flight(request->session_id() == "s" ? 3 : 0);
      return grpc::Status::OK;
    }
  };
  class Filtering final : public v1alpha1::FilterService::Service {
    grpc::Status Filter(grpc::ServerContext* context, const v1alpha1::FilterRequest* request,
                        v1alpha1::FilterResponse* response) override {
      if (request->header().snapshot_version() > 1) {
        while (!context->IsCancelled()) usleep(1000);
        return grpc::Status::CANCELLED;
      }
      v1alpha1::CallError error;
      error.set_reason(v1alpha1::CallError::STALE);
      error.set_have_version(9);
      if (request->header().snapshot_version() == 0) {
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "behind",
                            error.SerializeAsString());
      }
      if (!request->header().host_instance().empty() &&
          request->header().host_instance() != "old-1") {
        error.set_reason(v1alpha1::CallError::WRONG_INSTANCE);
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "not this one",
                            error.SerializeAsString());
      }
      response->set_processed(3);
      response->set_feasible(request->header().host_instance());
      response->add_reasons()->set_code(v1alpha1::UNSCHEDULABLE);
      return grpc::Status::OK;
    }
  };
  // Acknowledges each version, and ends the stream at version 9.
  class State final : public v1alpha1::ClusterStateService::Service {
    grpc::Status Sync(
        grpc::ServerContext*,
        grpc::ServerReaderWriter<v1alpha1::SyncResponse, v1alpha1::SyncRequest>* stream) override {
      v1alpha1::SyncRequest request;
      while (stream->Read(&request)) {
        if (request.version() == 9) return grpc::Status(grpc::StatusCode::ABORTED, "nine");
        v1alpha1::SyncResponse response;
        response.mutable_ack()->set_version(request.version());
        stream->Write(response);
      }
      return grpc::Status::OK;
    }
  };

  const std::string address_;
  Info info_;
  Filtering filter_;
  State state_;
  std::unique_ptr<grpc::Server> server_;
};

class AdapterTest : public ::testing::Test {
 protected:
  static std::unique_ptr<grpc::ClientContext> Context(
      std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + timeout);
    return context;
  }
  grpc::Status Filter(const v1beta1::FilterRequest& request, v1beta1::FilterResponse* response,
                      grpc::ClientContext* context) {
    return v1beta1::FilterService::NewStub(channel_)->Filter(context, request, response);
  }

  OldHost host_;
  std::shared_ptr<grpc::Channel> channel_ = SpeakOldVersion(host_.Connect());
};

TEST_F(AdapterTest, AnswersTheHandshakeForTheHost) {
  handshake::v1::HandshakeResponse identity;
  ASSERT_TRUE(handshake::v1::HandshakeService::NewStub(channel_)
                  ->Handshake(Context().get(), handshake::v1::HandshakeRequest(), &identity)
                  .ok());
  EXPECT_EQ(identity.instance(), "old-1");
  EXPECT_THAT(identity.contract_versions(), ElementsAre("v1alpha1"));
  v1beta1::GetHostInfoResponse info;
  ASSERT_TRUE(v1beta1::PluginHostService::NewStub(channel_)
                  ->GetHostInfo(Context().get(), v1beta1::GetHostInfoRequest(), &info)
                  .ok());
  EXPECT_EQ(info.plugins(0).name(), "Fit");
}

TEST_F(AdapterTest, ForwardsCallsAndTheirErrors) {
  v1beta1::FilterRequest request;
  v1beta1::FilterResponse response;
  request.mutable_header()->set_exact_version(1);
  ASSERT_TRUE(Filter(request, &response, Context().get()).ok());
  EXPECT_EQ(response.processed(), 3u);
  EXPECT_EQ(response.reasons(0).code(), v1beta1::CODE_UNSCHEDULABLE);
  request.clear_header();
  const grpc::Status stale = Filter(request, &response, Context().get());
  EXPECT_EQ(stale.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const auto error = call_errors::CallErrorOf(stale);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->reason(), v1beta1::CallError::REASON_STALE);
  EXPECT_EQ(error->have_version(), 9);
  // The host does not serve it.
  v1beta1::PermitResponse permit;
  EXPECT_EQ(v1beta1::PermitService::NewStub(channel_)
                ->Permit(Context().get(), v1beta1::PermitRequest(), &permit)
                .error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

// An old host looks for the intended instance in the header of each call.
TEST_F(AdapterTest, NamesTheInstanceOfConfigureInEachCall) {
  const auto stub = v1beta1::PluginHostService::NewStub(channel_);
  v1beta1::ConfigureRequest configure;
  v1beta1::ConfigureResponse configured;
  v1beta1::FilterRequest request;
  v1beta1::FilterResponse response;
  request.mutable_header()->set_exact_version(1);
  configure.set_instance("old-1");
  ASSERT_TRUE(stub->Configure(Context().get(), configure, &configured).ok());
  ASSERT_TRUE(Filter(request, &response, Context().get()).ok());
  EXPECT_EQ(response.feasible(), "old-1");
  configure.set_instance("old-0");
  ASSERT_TRUE(stub->Configure(Context().get(), configure, &configured).ok());
  const auto error = call_errors::CallErrorOf(Filter(request, &response, Context().get()));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->reason(), v1beta1::CallError::REASON_WRONG_INSTANCE);
}

TEST_F(AdapterTest, EndsSessionsButDrainsNoHost) {
  const auto stub = v1beta1::PluginHostService::NewStub(channel_);
  v1beta1::EndSessionRequest end;
  v1beta1::EndSessionResponse ended;
  end.set_session_id("s");
  ASSERT_TRUE(stub->EndSession(Context().get(), end, &ended).ok());
  EXPECT_EQ(ended.attempts_in_flight(), 3u);
  v1beta1::DrainResponse drained;
  EXPECT_EQ(stub->Drain(Context().get(), v1beta1::DrainRequest(), &drained).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AdapterTest, ChecksNoConfigurationInPlaceOfTheHost) {
  const auto stub = v1beta1::PluginHostService::NewStub(channel_);
  v1beta1::ConfigureRequest request;
  v1beta1::ConfigureResponse response;
  request.set_session_id("s");
  ASSERT_TRUE(stub->Configure(Context().get(), request, &response).ok());
  ASSERT_EQ(response.problems_size(), 1);
  EXPECT_EQ(response.problems(0).message(), "configured s");
  request.set_validate_only(true);
  EXPECT_EQ(stub->Configure(Context().get(), request, &response).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(AdapterTest, ForwardsDeadlinesAndCancellations) {
  v1beta1::FilterRequest request;
  v1beta1::FilterResponse response;
  request.mutable_header()->set_exact_version(2);
  EXPECT_EQ(Filter(request, &response, Context(std::chrono::milliseconds(50)).get()).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  auto context = Context();
  std::thread cancel([&] { context->TryCancel(); });
  EXPECT_EQ(Filter(request, &response, context.get()).error_code(), grpc::StatusCode::CANCELLED);
  cancel.join();
}

TEST_F(AdapterTest, ForwardsStreamsInBothDirections) {
  auto context = Context();
  auto stream = v1beta1::ClusterStateService::NewStub(channel_)->Sync(context.get());
  v1beta1::SyncResponse response;
  for (int64_t version = 1; version <= 3; ++version) {
    v1beta1::SyncRequest request;
    request.set_phase(v1beta1::SyncRequest::PHASE_DELTA);
    request.set_version(version);
    // More than gRPC's default limit.
    request.mutable_changes()->Reserve(1);
    request.add_changes()->mutable_namespace_remove()->set_name(std::string(size_t{5} << 20, 'x'));
    if (version < 3) request.clear_changes();
    ASSERT_TRUE(stream->Write(request));
    if (version == 3) break;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.ack().version(), version);
  }
  // The test's host has the default limit of 4 MiB.
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);

  context = Context();
  stream = v1beta1::ClusterStateService::NewStub(channel_)->Sync(context.get());
  v1beta1::SyncRequest last;
  last.set_version(9);
  ASSERT_TRUE(stream->Write(last));
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status ended = stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ended.error_message(), "nine");
}

TEST_F(AdapterTest, AHostThatStopsEndsItsStreams) {
  auto context = Context();
  auto stream = v1beta1::ClusterStateService::NewStub(channel_)->Sync(context.get());
  v1beta1::SyncRequest request;
  request.set_version(1);
  v1beta1::SyncResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  host_.Stop();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(AdapterTest, EndsWhileCallsAreInProgress) {
  auto context = Context();
  auto stream = v1beta1::ClusterStateService::NewStub(channel_)->Sync(context.get());
  v1beta1::SyncRequest request;
  request.set_version(1);
  v1beta1::SyncResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  channel_ = nullptr;  // The stub of the stream was temporary.
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_FALSE(stream->Finish().ok());
}

}  // namespace
}  // namespace outboard::hosts::adapter
