#include "shim/extender/endpoint.h"

#include <glog/logging.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "shim/clock.h"
#include "shim/steady_condition.h"

namespace outboard::extender {
namespace {

constexpr absl::Duration kReplyGrace = absl::Milliseconds(200);

// A reply from the scheduling thread to a server thread, which may have timed out.
template <typename T>
class Reply {
 public:
  void Set(absl::StatusOr<T> value) {
    absl::MutexLock lock(&mutex_);
    value_ = std::move(value);
    set_.Notify();
  }
  absl::StatusOr<T> Await(absl::Time deadline) {
    absl::MutexLock lock(&mutex_);
    const auto is_there = [this]()
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return value_.has_value(); };
    if (set_.AwaitFor(mutex_, deadline - SteadyNow(), is_there)) return *std::move(value_);
    return absl::DeadlineExceededError("the extender did not answer in time");
  }

 private:
  absl::Mutex mutex_;
  SteadyCondition set_;
  std::optional<absl::StatusOr<T>> value_ ABSL_GUARDED_BY(mutex_);
};

// A question with the body that it points into.
template <typename Question>
absl::StatusOr<std::shared_ptr<const Question>> Decode(
    absl::StatusOr<Question> (*decode)(absl::string_view),
    const std::shared_ptr<const std::string>& body) {
  struct Both {
    std::shared_ptr<const std::string> body;
    Question question;
  };
  absl::StatusOr<Question> question = decode(*body);
  if (!question.ok()) return question.status();
  auto both = std::make_shared<const Both>(Both{body, *std::move(question)});
  return std::shared_ptr<const Question>(both, &both->question);
}

}  // namespace

// The requests that wait for the scheduling thread: a process that stops must not wait for them.
class Endpoint::OpenRequests {
 public:
  // `end` gives up waiting; it may be called until Remove. nullopt: the endpoint stops.
  std::optional<uint64_t> Add(std::function<void()> end) {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return std::nullopt;
    ends_[++last_id_] = std::move(end);
    return last_id_;
  }
  void Remove(uint64_t id) {
    absl::MutexLock lock(&mutex_);
    ends_.erase(id);
  }
  void EndAll() {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& [id, end] : ends_) end();
  }

 private:
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, std::function<void()>> ends_ ABSL_GUARDED_BY(mutex_);
};

Endpoint::Endpoint(EndpointOptions options, ExtenderHandler* handler)
    : options_(std::move(options)), handler_(handler), open_(std::make_unique<OpenRequests>()) {}

Endpoint::~Endpoint() { open_->EndAll(); }

absl::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kFilter:
      return "filter";
    case Verb::kPrioritize:
      return "prioritize";
    case Verb::kPreempt:
      return "preempt";
    case Verb::kBind:
      return "bind";
    case Verb::kAdmit:
      return "admit";
  }
  return "";
}

std::string NotLeading(absl::string_view lease, absl::string_view leader) {
  return absl::StrCat("this replica does not hold the lease ", lease, "; ",
                      leader.empty() ? "no other replica is known to hold it"
                                     : absl::StrCat("ask ", leader, ", which does"));
}

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Start(EndpointOptions options,
                                                          ExtenderHandler* handler) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(std::move(options), handler));
  ServerOptions server = std::move(endpoint->options_.server);
  server.answer = [raw = endpoint.get()](Verb verb, std::string body) {
    return raw->Answer(verb, std::move(body));
  };
  absl::StatusOr<std::unique_ptr<Server>> started = Server::Start(std::move(server));
  if (!started.ok()) return started.status();
  endpoint->server_ = *std::move(started);
  return endpoint;
}

HttpAnswer Endpoint::Answer(Verb verb, std::string body) {
  const absl::Time began = SteadyNow();
  absl::StatusOr<std::string> answer =
      Ask(verb, std::make_shared<const std::string>(std::move(body)));
  const bool malformed = absl::IsInvalidArgument(answer.status());
  options_.observe(verb,
                   answer.ok() ? "answered"
                   : malformed ? "malformed"
                               : "failed",
                   SteadyNow() - began);
  if (answer.ok()) return {200, *std::move(answer)};
  const std::string why(answer.status().message());
  VLOG(2) << "Extender request " << VerbName(verb) << " failed: " << why;
  if (malformed) return {400, why + "\n"};
  if (verb == Verb::kFilter || verb == Verb::kBind) return {200, EncodeError(why)};
  return {503, why + "\n"};
}

template <typename T>
absl::StatusOr<T> Endpoint::OnSchedulingThread(
    absl::Duration limit, std::function<void(absl::Time give_up, absl::Time now,
                                             std::function<void(absl::StatusOr<T>)> reply)>
                              work) {
  const absl::Time deadline = SteadyNow() + limit;
  auto reply = std::make_shared<Reply<T>>();
  const absl::Status stopping = absl::UnavailableError("the extender is stopping");
  const std::optional<uint64_t> open = open_->Add([reply, stopping] { reply->Set(stopping); });
  if (!open.has_value()) return stopping;
  options_.post(
      [reply, work = std::move(work), deadline, is_ready = options_.is_ready](absl::Time now) {
        // The server thread has timed out and needs no answer: do not call hosts.
        if (now >= deadline) return;
        if (absl::Status ready = is_ready(); !ready.ok()) return reply->Set(std::move(ready));
        work(deadline, now, [reply](absl::StatusOr<T> value) { reply->Set(std::move(value)); });
      });
  // At the deadline the handler replies with the reason, which takes a moment to arrive.
  absl::StatusOr<T> value = reply->Await(deadline + kReplyGrace);
  open_->Remove(*open);
  return value;
}

absl::StatusOr<NodesAnswer> Endpoint::Evaluate(Verb verb,
                                               std::shared_ptr<const NodesQuestion> question) {
  if (verb == Verb::kPrioritize) {
    if (auto scores = kept_.Take(*question, SteadyNow()); scores.has_value()) {
      NodesAnswer answer;
      answer.scores = *std::move(scores);
      return answer;
    }
  }
  auto answer = OnSchedulingThread<NodesAnswer>(
      options_.deadline,
      [handler = handler_, question](absl::Time give_up, absl::Time now, auto reply) {
        handler->Evaluate(question, give_up, now, std::move(reply));
      });
  if (!answer.ok()) return answer;
  if (verb == Verb::kFilter) {
    if (answer->scoring.ok()) kept_.Keep(*question, *answer, SteadyNow());
  } else if (!answer->scoring.ok()) {
    return answer->scoring;
  }
  return answer;
}

absl::StatusOr<std::string> Endpoint::Bind(const std::shared_ptr<const std::string>& body) {
  auto order = Decode(&DecodeBinding, body);
  if (!order.ok()) return order.status();
  auto bound = OnSchedulingThread<bool>(
      options_.bind_deadline, [handler = handler_, asked = *order, may_bind = options_.may_bind](
                                  absl::Time give_up, absl::Time now, auto reply) {
        if (absl::Status may = may_bind(); !may.ok()) return reply(std::move(may));
        handler->Bind(asked, give_up, now, [reply](const absl::Status& ended) {
          reply(ended.ok() ? absl::StatusOr<bool>(true) : absl::StatusOr<bool>(ended));
        });
      });
  if (!bound.ok()) return bound.status();
  return EncodeError("");
}

absl::StatusOr<std::string> Endpoint::Ask(Verb verb, std::shared_ptr<const std::string> body) {
  ExtenderHandler* const handler = handler_;
  switch (verb) {
    case Verb::kFilter:
    case Verb::kPrioritize: {
      auto question = Decode(&DecodeNodesQuestion, body);
      if (!question.ok()) return question.status();
      const absl::StatusOr<NodesAnswer> answer = Evaluate(verb, *question);
      if (!answer.ok()) return answer.status();
      return verb == Verb::kFilter ? EncodeFilter(**question, *answer)
                                   : EncodePriorities(**question, *answer);
    }
    case Verb::kPreempt: {
      auto question = Decode(&DecodePreemption, body);
      if (!question.ok()) return question.status();
      auto answer = OnSchedulingThread<std::vector<bool>>(
          options_.deadline,
          [handler, asked = *question](absl::Time give_up, absl::Time now, auto reply) {
            handler->Preempt(asked, give_up, now, std::move(reply));
          });
      if (!answer.ok()) return answer.status();
      return EncodePreemption(**question, *answer);
    }
    case Verb::kBind:
      return Bind(body);
    case Verb::kAdmit: {
      auto review = Decode(&DecodeBindReview, body);
      if (!review.ok()) return review.status();
      auto objection = OnSchedulingThread<std::string>(
          options_.deadline, [handler, asked = *review, may_bind = options_.may_bind](
                                 absl::Time give_up, absl::Time now, auto reply) {
            if (absl::Status may = may_bind(); !may.ok()) return reply(std::move(may));
            handler->Admit(asked, give_up, now, std::move(reply));
          });
      if (!objection.ok()) return objection.status();
      if (!objection->empty()) options_.on_objection(*objection);
      return EncodeBindReview(**review, *objection);
    }
  }
  return absl::InternalError("unknown verb");
}

}  // namespace outboard::extender
