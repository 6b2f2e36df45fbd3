#include "shim/hosts/adapter/adapter.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "shim/hosts/adapter/translation.h"

namespace outboard::hosts::adapter {
namespace {

using Channel = std::shared_ptr<grpc::Channel>;

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return "";
  std::string text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

grpc::ByteBuffer BufferOf(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// What calls need from earlier ones of the session; a channel has one.
//
// Threading: any thread.
class SessionState {
 public:
  std::atomic<uint32_t> num_nodes = 0;
  void SetInstance(std::string instance) {
    absl::MutexLock lock(&mu_);
    instance_ = std::move(instance);
  }
  std::string instance() const {
    absl::MutexLock lock(&mu_);
    return instance_;
  }

 private:
  mutable absl::Mutex mu_;
  std::string instance_ ABSL_GUARDED_BY(mu_);
};

// One call, of any method, as two streams of messages: from the client, and to the host.
//
// Threading: gRPC's threads, and no callback runs inside of a call that starts an operation. Per
//   direction one operation is in progress at a time, so its buffer has one user at a time.
// Lifetime: until both streams are done; the host's is done first.
class Call final : public grpc::ServerGenericBidiReactor {
 public:
  // `session` outlives the call.
  Call(grpc::GenericCallbackServerContext* context, const Channel& host, SessionState* session)
      : method_(context->method()), session_(*session), stub_(host), to_host_(this) {
    const std::string old_method = OldMethod(method_);
    if (old_method.empty()) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "not in v1alpha1: " + method_));
      return;
    }
    context_.set_deadline(context->deadline());
    stub_.PrepareBidiStreamingCall(&context_, old_method, grpc::StubOptions(), &to_host_);
    // Both directions start operations outside of the host stream's own callbacks.
    to_host_.AddMultipleHolds(2);
    to_host_.StartRead(&answer_);
    to_host_.StartCall();
    StartRead(&request_);
  }

  // From the client to the host.
  void OnReadDone(bool ok) override {
    absl::StatusOr<std::string> request = absl::CancelledError();
    if (ok) {
      const std::string bytes = TextOf(request_);
      // The shim sends changes before the calls that depend on them.
      if (const auto num_nodes = NumNodesAfter(method_, bytes)) session_.num_nodes = *num_nodes;
      if (auto instance = InstanceAfter(method_, bytes)) session_.SetInstance(*std::move(instance));
      request = RequestToOld(method_, bytes, session_.num_nodes);
      if (request.ok()) {
        AddInstance(method_, session_.instance(), &*request);
      } else {
        Fail(request.status());
      }
    }
    absl::MutexLock lock(&mu_);
    if (!may_write_) return;
    if (request.ok()) {
      request_ = BufferOf(*request);
      to_host_.StartWrite(&request_);
      return;
    }
    if (!ok) to_host_.StartWritesDone();
    EndWrites();
  }
  void OnSent(bool ok) {
    {
      absl::MutexLock lock(&mu_);
      if (!ok) EndWrites();
      if (!may_write_) return;
    }
    StartRead(&request_);
  }

  // From the host to the client.
  void OnAnswer(bool ok) {
    absl::StatusOr<std::string> answer = absl::CancelledError();
    if (ok) {
      answer = ResponseFromOld(method_, TextOf(answer_));
      if (!answer.ok()) Fail(answer.status());
    }
    if (!answer.ok()) {
      // The call has ended, whatever the client still wants to send.
      absl::MutexLock lock(&mu_);
      EndWrites();
      to_host_.RemoveHold();
      return;
    }
    answer_ = BufferOf(*answer);
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      to_host_.StartRead(&answer_);
    } else {
      context_.TryCancel();
      to_host_.RemoveHold();
    }
  }

  void OnCancel() override { context_.TryCancel(); }
  void OnHostDone(const grpc::Status& status) {
    grpc::Status outcome;
    {
      absl::MutexLock lock(&mu_);
      outcome = failure_.ok() ? StatusFromOld(status) : failure_;
    }
    Finish(std::move(outcome));  // May delete this.
  }
  void OnDone() override { delete this; }

 private:
  class ToHost final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit ToHost(Call* call) : call_(call) {}
    void OnReadDone(bool ok) override { call_->OnAnswer(ok); }
    void OnWriteDone(bool ok) override { call_->OnSent(ok); }
    void OnDone(const grpc::Status& status) override { call_->OnHostDone(status); }

   private:
    Call* const call_;
  };

  // No operation to the host may be started after this.
  void EndWrites() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(may_write_, false)) to_host_.RemoveHold();
  }

  void Fail(const absl::Status& why) {
    {
      absl::MutexLock lock(&mu_);
      failure_ = grpc::Status(
          absl::IsUnimplemented(why) ? grpc::StatusCode::UNIMPLEMENTED : grpc::StatusCode::INTERNAL,
          std::string(why.message()));
    }
    context_.TryCancel();
  }

  const std::string method_;
  SessionState& session_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  ToHost to_host_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  absl::Mutex mu_;
  grpc::Status failure_ ABSL_GUARDED_BY(mu_);
  bool may_write_ ABSL_GUARDED_BY(mu_) = true;
};

class Adapter final : public grpc::CallbackGenericService {
 public:
  explicit Adapter(Channel host) : host_(std::move(host)) {
    grpc::ServerBuilder builder;
    // The host's own channel has the limits.
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = server_->InProcessChannel(arguments);
  }
  ~Adapter() override {
    channel_ = nullptr;
    server_->Shutdown(std::chrono::system_clock::now());
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Call(context, host_, &session_);
  }
  grpc::Channel* channel() const { return channel_.get(); }

 private:
  const Channel host_;
  SessionState session_;
  std::unique_ptr<grpc::Server> server_;
  Channel channel_;
};

}  // namespace

Channel SpeakOldVersion(Channel host) {
  auto adapter = std::make_shared<Adapter>(std::move(host));
  grpc::Channel* const channel = adapter->channel();
  return Channel(std::move(adapter), channel);
}

}  // namespace outboard::hosts::adapter
