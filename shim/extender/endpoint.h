// The complete extender: server threads decode, ask the scheduling thread, and encode.
#ifndef OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_
#define OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shim/extender/extender_handler.h"
#include "shim/extender/score_cache.h"
#include "shim/extender/server.h"

namespace outboard::extender {

struct EndpointOptions {
  ServerOptions server;  // without `answer`
  absl::Duration deadline = absl::Seconds(2);
  // Of binds in its place: they wait at Permit and PreBind.
  absl::Duration bind_deadline = absl::Seconds(4);
  // Runs work on the scheduling thread, soon. Called from any thread.
  std::function<void(std::function<void(absl::Time now)>)> post;
  // Called on the scheduling thread: whether requests may be answered, and whether pods may be
  // bound.
  std::function<absl::Status()> is_ready;
  std::function<absl::Status()> may_bind;
  // Called with the result of a request (answered, failed, malformed), from any thread.
  std::function<void(Verb verb, absl::string_view result, absl::Duration elapsed)> observe;
  // Called with the reason of a denied bind, from any thread.
  std::function<void(const std::string& objection)> on_objection = [](const std::string&) {};
};

absl::string_view VerbName(Verb verb);

// Why a replica without the lease neither binds nor admits binds: only the leader knows which binds
// are pending. `leader`: its identity; empty: unknown. Pure.
std::string NotLeading(absl::string_view lease, absl::string_view leader);

// Errors are reported in upstream's form: an `Error` in the answer to filter and bind; status 503
// for prioritize, preempt and admit, whose answers have no error field; status 400 for an invalid
// body.
//
// Threading: Start and destruction on one thread.
// Lifetime: the handler and the objects used by the options outlive this object. Posted work may
// run after its destruction, which ends open requests with an error.
class Endpoint {
 public:
  // Errors: see Server.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Start(EndpointOptions options,
                                                         ExtenderHandler* handler);

  ~Endpoint();

  int port() const { return server_->port(); }

 private:
  class OpenRequests;

  Endpoint(EndpointOptions options, ExtenderHandler* handler);

  HttpAnswer Answer(Verb verb, std::string body);
  absl::StatusOr<NodesAnswer> Evaluate(Verb verb, std::shared_ptr<const NodesQuestion> question);
  // The answer's body. INVALID_ARGUMENT: malformed request.
  absl::StatusOr<std::string> Ask(Verb verb, std::shared_ptr<const std::string> body);
  absl::StatusOr<std::string> Bind(const std::shared_ptr<const std::string>& body);
  template <typename T>
  absl::StatusOr<T> OnSchedulingThread(
      absl::Duration limit, std::function<void(absl::Time give_up, absl::Time now,
                                               std::function<void(absl::StatusOr<T>)> reply)>
                                work);

  EndpointOptions options_;  // without `server`, which was moved
  ExtenderHandler* const handler_;
  ScoreCache kept_;
  const std::unique_ptr<OpenRequests> open_;
  std::unique_ptr<Server> server_;
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_ENDPOINT_H_
