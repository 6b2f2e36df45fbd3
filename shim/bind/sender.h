// Starts API requests whose answers are handled on the scheduling thread, and none after the
// lease's fence.
#ifndef OUTBOARD_SHIM_BIND_SENDER_H_
#define OUTBOARD_SHIM_BIND_SENDER_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/bind/inbox.h"
#include "shim/kube/api_client.h"

namespace outboard::bind {

// Threading: Start on the scheduling thread; the handler runs there too, out of the inbox. The
// client's thread touches only the inbox, the fence and the clock. Lifetime:  the client outlives
// it. An owner that is gone by then gets no answer. Errors:    a request held back by the fence
// ends with FAILED_PRECONDITION, marked as not sent.
class Sender {
 public:
  using Answer = absl::StatusOr<kube::ApiResponse>;

  Sender(kube::ApiClient* client, Inbox inbox, std::function<absl::Time()> fence,
         std::function<absl::Time()> clock)
      : client_(client),
        inbox_(std::make_shared<Inbox>(std::move(inbox))),
        fence_(std::move(fence)),
        clock_(std::move(clock)) {}

  template <typename Owner, typename Operation>
  void Start(kube::ApiRequest request, std::weak_ptr<Owner> owner,
             void (Owner::*handler)(const Operation&, const Answer&, absl::Time),
             const Operation& operation) {
    request.before_send = [fence = fence_, clock = clock_]() -> absl::Status {
      // The clock last: a process that is stopped between the two is late, not early.
      const absl::Time until = fence();
      if (clock() < until) return absl::OkStatus();
      return absl::FailedPreconditionError("the renew deadline of the leader's lease has passed");
    };
    client_->Start(std::move(request), [inbox = inbox_, owner = std::move(owner), handler,
                                        operation = Operation(operation)](Answer answer) mutable {
      // The owner is locked on the scheduling thread only, so that it can never end on this one.
      auto shared = std::make_shared<Answer>(std::move(answer));
      (*inbox)([owner = std::move(owner), handler, operation = std::move(operation),
                shared](absl::Time now) {
        if (std::shared_ptr<Owner> alive = owner.lock())
          ((*alive).*handler)(operation, *shared, now);
      });
    });
  }

 private:
  kube::ApiClient* client_;
  std::shared_ptr<Inbox> inbox_;
  std::function<absl::Time()> fence_;
  std::function<absl::Time()> clock_;
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_SENDER_H_
