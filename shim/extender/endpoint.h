// The extender, put together: the server's threads decode, ask the scheduling thread, and encode.
#ifndef OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_
#define OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/extender/front_desk.h"
#include "shim/extender/kept_scores.h"
#include "shim/extender/server.h"

namespace outboard::extender {

struct EndpointOptions {
  ServerOptions server;  // without `answer`
  absl::Duration deadline = absl::Seconds(2);
  // Has work done on the scheduling thread, soon; from any thread.
  std::function<void(std::function<void(absl::Time now)>)> post;
  // Asked there: whether anything may be answered, and whether a pod may be bound.
  std::function<absl::Status()> is_ready;
  std::function<absl::Status()> may_bind;
  // Told how a request ended (answered, failed, malformed); from any thread.
  std::function<void(Verb verb, absl::string_view result, absl::Duration elapsed)> observe;
  // Told of a bind that was not admitted; from any thread.
  std::function<void(const std::string& objection)> on_objection = [](const std::string&) {};
};

absl::string_view VerbName(Verb verb);

// What goes wrong is told as upstream reads it: an `Error` in the answer to filter and bind; to
// prioritize, preempt and admit, whose answers have no place for one, status 503. 400 for a body
// that is not understood.
//
// Threading: Start and destruction on one thread. Lifetime: the front desk, and what the options
// use, outlive it; work that was posted may be done later than that.
class Endpoint {
 public:
  // Errors: the server's.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Start(EndpointOptions options, FrontDesk* desk);

  int port() const { return server_->port(); }

 private:
  Endpoint(EndpointOptions options, FrontDesk* desk) : options_(std::move(options)), desk_(desk) {}

  HttpAnswer Answer(Verb verb, std::string body);
  absl::StatusOr<NodesAnswer> Judge(Verb verb, std::shared_ptr<const NodesQuestion> question);
  // The answer's body; INVALID_ARGUMENT: the request is malformed.
  absl::StatusOr<std::string> Ask(Verb verb, std::shared_ptr<const std::string> body);
  template <typename T>
  absl::StatusOr<T> OnSchedulingThread(
      std::function<void(absl::Time give_up, absl::Time now,
                         std::function<void(absl::StatusOr<T>)> reply)>
          work);

  EndpointOptions options_;  // without the server's, which it has taken
  FrontDesk* const desk_;
  KeptScores kept_;
  std::unique_ptr<Server> server_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_
