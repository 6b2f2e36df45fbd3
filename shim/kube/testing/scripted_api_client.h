// An ApiClient whose answers are set by the test, one by one.
#ifndef OUTBOARD_SHIM_KUBE_TESTING_SCRIPTED_API_CLIENT_H_
#define OUTBOARD_SHIM_KUBE_TESTING_SCRIPTED_API_CLIENT_H_

#include <deque>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/kube/api_client.h"

namespace outboard::kube {

// Keeps requests until the test answers them. Calls before_send at that moment, as if the request
// were sent just then.
//
// Threading: one thread.
// Lifetime: the destructor ends unanswered requests with CANCELLED.
// Errors: answering without a pending request crashes the test.
class ScriptedApiClient : public ApiClient {
 public:
  ~ScriptedApiClient() override {
    while (!waiting_.empty()) Fail(absl::CancelledError("client ended"));
  }

  void Start(ApiRequest request, Done done) override {
    waiting_.push_back({std::move(request), std::move(done)});
  }
  absl::Status Stream(const ApiRequest& request, StreamSink& sink,
                      const CancelToken& cancel) override {
    return absl::UnimplementedError("no streams here");
  }

  size_t waiting() const { return waiting_.size(); }
  const ApiRequest& request(size_t index = 0) const { return waiting_.at(index).request; }

  // Answers the oldest request, or the one at `index`.
  void Answer(int http_status, std::string body, size_t index = 0) {
    ApiResponse response;
    response.http_status = http_status;
    response.content_type = std::string(kJson);
    response.body = std::move(body);
    End(std::move(response), index);
  }
  void Fail(absl::Status status, size_t index = 0) { End(std::move(status), index); }

  // When the last answered request had to end.
  absl::Time ends_by() const { return ends_by_; }

 private:
  struct Waiting {
    ApiRequest request;
    Done done;
  };
  void End(absl::StatusOr<ApiResponse> answer, size_t index) {
    Waiting one = std::move(waiting_.at(index));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
    absl::Status allowed = one.request.before_send ? one.request.before_send() : absl::OkStatus();
    if (!allowed.ok()) answer = WithDelivery(std::move(allowed), Delivery::kNotSent);
    ends_by_ = one.request.ends_by ? one.request.ends_by() : absl::InfiniteFuture();
    one.done(std::move(answer));
  }
  std::deque<Waiting> waiting_;
  absl::Time ends_by_ = absl::InfiniteFuture();
};

}  // namespace outboard::kube

#endif  // OUTBOARD_SHIM_KUBE_TESTING_SCRIPTED_API_CLIENT_H_
