#include "shim/extender/server.h"

#include <httplib.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "shim/http/bounded_server.h"
#include "shim/http/serving_thread.h"
#include "shim/steady_condition.h"

namespace outboard::extender {
namespace {

constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kJson[] = "application/json";

// Of a request, besides its body.
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

const std::map<std::string, Verb>& Verbs() {
  static const auto* const verbs =
      new std::map<std::string, Verb>{{"/filter", Verb::kFilter},
                                      {"/prioritize", Verb::kPrioritize},
                                      {"/preempt", Verb::kPreempt},
                                      {"/bind", Verb::kBind},
                                      {"/admit", Verb::kAdmit}};
  return *verbs;
}

// Only filter, prioritize and preempt carry nodes. A pod's binding has some hundred bytes; the API
// server adds who binds.
size_t MostBodyBytes(Verb verb, size_t with_nodes) {
  switch (verb) {
    case Verb::kBind:
      return std::min(with_nodes, size_t{64} << 10);
    case Verb::kAdmit:
      return std::min(with_nodes, size_t{1} << 20);
    default:
      return with_nodes;
  }
}

std::optional<size_t> LengthOf(const httplib::Request& request) {
  size_t length = 0;
  if (!absl::SimpleAtoi(request.get_header_value("Content-Length"), &length)) return std::nullopt;
  return length;
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions given) : options(std::move(given)) {}

  static void Refuse(int status, absl::string_view why, httplib::Response& response) {
    response.status = status;
    response.set_content(absl::StrCat(why, "\n"), kText);
  }

  void Serve(Verb verb, const httplib::Request& request, const httplib::ContentReader& read,
             httplib::Response& response) {
    if (!TakeTurn()) {
      // Unread bytes would be parsed as the next request.
      read([](const char*, size_t) { return true; });
      return Refuse(503, "too many concurrent requests", response);
    }
    // RefuseForm has bounded the length, but not what a compressed body becomes.
    const size_t most = MostBodyBytes(verb, options.max_body_bytes);
    std::string body;
    body.reserve(LengthOf(request).value_or(0));
    bool too_long = false;
    const bool complete = read([&](const char* data, size_t size) {
      too_long = size > most - body.size();
      if (!too_long) body.append(data, size);
      return !too_long;
    });
    if (too_long || response.status == 413) {
      Refuse(413, absl::StrCat("the body is longer than ", most, " bytes"), response);
    } else if (!complete) {
      Refuse(400, "the body is incomplete", response);
    } else if (verb == Verb::kBind && !options.serves_bind) {
      Refuse(403, "bind requires a client certificate or loopback", response);
    } else if (verb == Verb::kAdmit && !options.serves_admit) {
      Refuse(403, "admit is disabled: extender.admitsBindings is not set", response);
    } else {
      const bool may_wait = verb == Verb::kBind;
      if (may_wait) EndTurn();
      HttpAnswer answer = options.answer(verb, std::move(body));
      response.status = answer.status;
      response.set_header("Content-Type", answer.status == 200 ? kJson : kText);
      response.body = std::move(answer.body);
      if (may_wait) return;
    }
    EndTurn();
  }

  bool TakeTurn() {
    absl::MutexLock lock(&turns);
    const auto is_free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turns) {
      return requests < options.max_requests;
    };
    if (!turn_ended.AwaitFor(turns, options.max_wait, is_free)) return false;
    ++requests;
    return true;
  }
  void EndTurn() {
    absl::MutexLock lock(&turns);
    --requests;
    turn_ended.Notify();
  }

  // Before a byte of the body is read. True: the request was refused.
  bool RefuseForm(const httplib::Request& request, httplib::Response& response) const {
    if (request.method != "POST") {
      Refuse(405, "405 method not allowed", response);
      response.set_header("Allow", "POST");
      return true;
    }
    const auto verb = Verbs().find(request.path);
    if (verb == Verbs().end()) {
      Refuse(404, "404 page not found", response);
      return true;
    }
    if (!options.serves_profile && verb->second != Verb::kAdmit) {
      Refuse(404, "only /admit is served: extender.profile is not set", response);
      return true;
    }
    const size_t most = MostBodyBytes(verb->second, options.max_body_bytes);
    // A chunked body may have any length, and so may the lines between its chunks.
    const std::optional<size_t> length = LengthOf(request);
    if (request.has_header("Transfer-Encoding") || !length.has_value()) {
      Refuse(411, "Content-Length is missing", response);
    } else if (*length > most) {
      Refuse(413, absl::StrCat("the body is longer than ", most, " bytes"), response);
    } else {
      return false;
    }
    return true;
  }

  void AddHandlers() {
    for (const auto& [path, verb] : Verbs()) {
      server->Post(path,
                   [this, verb = verb](const httplib::Request& request, httplib::Response& response,
                                       const httplib::ContentReader& read) {
                     Serve(verb, request, read, response);
                   });
    }
    server->set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return RefuseForm(request, response) ? httplib::Server::HandlerResponse::Handled
                                               : httplib::Server::HandlerResponse::Unhandled;
        });
    server->set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty() && response.status == 404)
        response.set_content("404 page not found\n", kText);
    });
    server->set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  }

  ServerOptions options;
  std::unique_ptr<http::BoundedServer> server;
  absl::Mutex turns;
  SteadyCondition turn_ended;
  size_t requests ABSL_GUARDED_BY(turns) = 0;
  http::ServingThread serving;  // last member: requests use the others
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  ServerOptions& wanted = impl->options;
  http::ConnectionLimits limits;
  limits.header_bytes = kMaxHeaderBytes;
  limits.request_bytes = wanted.max_body_bytes + kMaxHeaderBytes;
  limits.request = limits.answer = wanted.io_timeout;
  limits.idle = wanted.idle_timeout;
  impl->server = std::make_unique<http::BoundedServer>(std::move(wanted.certificate), limits);
  httplib::Server& server = *impl->server;
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(std::numeric_limits<size_t>::max());
  server.set_keep_alive_timeout(absl::ToInt64Seconds(wanted.idle_timeout));
  server.set_payload_max_length(wanted.max_body_bytes);
  impl->AddHandlers();
  const absl::Status started =
      impl->serving.Start(&server, wanted.host, wanted.port,
                          {wanted.max_connections + wanted.max_binds, 0, impl->server->crowded()});
  if (!started.ok()) return started;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() { Stop(); }

int Server::port() const { return impl_->serving.port(); }

void Server::Stop() { impl_->serving.Stop(); }

}  // namespace outboard::extender
