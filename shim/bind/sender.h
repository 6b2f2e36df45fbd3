// Starts API requests whose answers are handled on the scheduling thread. Sends nothing after the
// lease's fence.
#ifndef OUTBOARD_SHIM_BIND_SENDER_H_
#define OUTBOARD_SHIM_BIND_SENDER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/bind/executor.h"
#include "shim/bind/fence.h"
#include "shim/fail_point.h"
#include "shim/kube/api_client.h"

namespace outboard::bind {

// Threading: Start on the scheduling thread; the executor runs the handler there too. The client's
// thread uses only the executor and the fence.
// Lifetime: the client outlives this object. A destroyed owner receives no answer.
// Errors: a request stopped by the fence ends with FAILED_PRECONDITION, marked as not sent.
class Sender {
 public:
  using Answer = absl::StatusOr<kube::ApiResponse>;

  Sender(kube::ApiClient* client, Executor executor, Fence fence)
      : client_(client),
        executor_(std::make_shared<Executor>(std::move(executor))),
        fence_(std::move(fence)) {}

  template <typename Owner, typename Operation>
  void Start(kube::ApiRequest request, std::weak_ptr<Owner> owner,
             void (Owner::*handler)(const Operation&, const Answer&, absl::Time),
             const Operation& operation) {
    request.before_send = [fence = fence_]() -> absl::Status {
      OUTBOARD_FAIL_POINT(before_fence_check);
      if (fence.Passed())
        return absl::FailedPreconditionError("the renew deadline of the leader's lease has passed");
      OUTBOARD_FAIL_POINT(write_allowed);
      return absl::OkStatus();
    };
    request.ends_by = [fence = fence_] { return fence.EndOfWrites(); };
    client_->Start(std::move(request), [executor = executor_, owner = std::move(owner), handler,
                                        operation = Operation(operation)](Answer answer) mutable {
      // The owner is locked on the scheduling thread only, so that it is never destroyed on this
      // one.
      auto shared = std::make_shared<Answer>(std::move(answer));
      (*executor)([owner = std::move(owner), handler, operation = std::move(operation),
                   shared](absl::Time now) {
        if (std::shared_ptr<Owner> alive = owner.lock())
          ((*alive).*handler)(operation, *shared, now);
      });
    });
  }

 private:
  kube::ApiClient* client_;
  std::shared_ptr<Executor> executor_;
  Fence fence_;
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_SENDER_H_
