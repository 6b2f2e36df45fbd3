// Asynchronous unary methods without boilerplate.
#ifndef OUTBOARD_PLUGIN_HOST_SERVICES_UNARY_CALL_H_
#define OUTBOARD_PLUGIN_HOST_SERVICES_UNARY_CALL_H_

#include <grpcpp/completion_queue.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "plugin_host/runtime/call_status.h"
#include "plugin_host/services/completion.h"
#include "plugin_host/services/deferred_calls.h"
#include "proto/call_errors/call_errors.h"

namespace outboard::services {

// A handler's result.
struct HandlerResult {
  // Absent: not yet; retry when the cache of `session` changes.
  std::optional<runtime::CallStatus> status;
  std::string session;
  // The answer if the deadline passes first.
  runtime::CallStatus otherwise;
};

// When a waiting call times out, so that the answer still reaches a caller with this deadline.
inline absl::Time GiveUpTime(absl::Time now, absl::Time deadline) {
  const absl::Duration left = deadline - now;
  return deadline - std::min(left / 5, absl::Milliseconds(20));
}

// A unary method of a service: always keeps one call waiting for a client; the handler answers each
// call.
//
// Threading: the engine's thread.
// Lifetime:  calls own themselves; they are gone once the completion queue is drained. Handler,
//            service, queue and deferred calls must outlive them.
// Errors:    a CallStatus becomes a gRPC status with a CallError in its details.
template <typename Service, typename Request, typename Response>
class UnaryCall final : public Completion, public DeferredCall {
 public:
  using Handler = std::function<HandlerResult(const Request&, absl::Time now, Response*)>;
  using RequestMethod = void (Service::*)(grpc::ServerContext*, Request*,
                                          grpc::ServerAsyncResponseWriter<Response>*,
                                          grpc::CompletionQueue*, grpc::ServerCompletionQueue*,
                                          void*);
  struct Method {
    Service* service;
    RequestMethod request_method;
    grpc::ServerCompletionQueue* queue;
    DeferredCalls* parking;
    Handler handler;
  };
  static void Listen(std::shared_ptr<const Method> method) { new UnaryCall(std::move(method)); }

  void OnDone(bool ok) override {
    if (answered_ || !ok) {  // Sent, or the server shuts down.
      delete this;
      return;
    }
    Listen(method_);
    const absl::Time now = absl::Now();
    give_up_ = GiveUpTime(now, absl::FromChrono(context_.deadline()));
    if (TryAnswer(now)) return;
    method_->parking->Park(this, session_, give_up_);
  }

  void OnAbandoned() override { delete this; }

  bool TryAnswer(absl::Time now) override {
    response_.Clear();
    HandlerResult result = method_->handler(request_, now, &response_);
    if (!result.status && now < give_up_) {
      session_ = std::move(result.session);
      return false;
    }
    answered_ = true;
    const runtime::CallStatus status = result.status ? *result.status : result.otherwise;
    if (status.ok()) {
      writer_.Finish(response_, grpc::Status::OK, static_cast<Completion*>(this));
    } else {
      writer_.FinishWithError(call_errors::ToGrpcStatus(status.ToProto()),
                              static_cast<Completion*>(this));
    }
    return true;
  }

 private:
  explicit UnaryCall(std::shared_ptr<const Method> method)
      : method_(std::move(method)), writer_(&context_) {
    (method_->service->*method_->request_method)(&context_, &request_, &writer_, method_->queue,
                                                 method_->queue, static_cast<Completion*>(this));
  }

  std::shared_ptr<const Method> method_;
  grpc::ServerContext context_;
  grpc::ServerAsyncResponseWriter<Response> writer_;
  Request request_;
  Response response_;
  absl::Time give_up_;
  std::string session_;
  bool answered_ = false;
};

}  // namespace outboard::services

#endif  // OUTBOARD_PLUGIN_HOST_SERVICES_UNARY_CALL_H_
