#include "shim/http/server.h"

#include <glog/logging.h>
#include <httplib.h>
#include <openssl/x509.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "shim/http/bounded_server.h"
#include "shim/http/serving_thread.h"
#include "shim/http/unix_socket.h"

namespace outboard::http {
namespace {

constexpr size_t kThreads = 16;
// Clients on the same machine are quick.
constexpr absl::Duration kPlainCrowded = absl::Milliseconds(250);
constexpr size_t kMaxWaiting = 64;
constexpr char kOldClearQuarantine[] = "/hosts/forgive";
constexpr char kCommandHeader[] = "X-Outboard-Command";
constexpr char kText[] = "text/plain; charset=utf-8";
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

absl::Status ParseAddress(absl::string_view address, bool anywhere, std::string* host, int* port) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(address.substr(colon + 1), port) ||
      *port < 0 || *port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("serving address \"", address, "\" is not HOST:PORT"));
  }
  absl::string_view name = address.substr(0, colon);
  if (absl::ConsumePrefix(&name, "[") && !absl::ConsumeSuffix(&name, "]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("serving address \"", address, "\" is not HOST:PORT"));
  }
  if (name.empty() || (!anywhere && name != "127.0.0.1" && name != "::1" && name != "localhost")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "serving address \"", address,
        "\" is not a loopback address (127.0.0.1, ::1, localhost); other addresses require "
        "secureServing"));
  }
  *host = std::string(name);
  return absl::OkStatus();
}

// Answers a health path like Kubernetes' components: reasons are only logged.
void ServeHealth(const std::string& path, const std::vector<Check>& checks,
                 const httplib::Request& request, httplib::Response& response) {
  std::set<std::string> excluded;
  for (size_t i = 0; i < request.get_param_value_count("exclude"); ++i) {
    excluded.insert(request.get_param_value("exclude", i));
  }
  std::string lines;
  bool healthy = true;
  for (const Check& check : checks) {
    if (excluded.erase(check.name) > 0) {
      absl::StrAppend(&lines, "[+]", check.name, " excluded: ok\n");
      continue;
    }
    const absl::Status status = check.run();
    if (status.ok()) {
      const std::string note = check.note == nullptr ? "" : check.note();
      absl::StrAppend(&lines, "[+]", check.name, " ok", note.empty() ? "" : ": ", note, "\n");
    } else {
      healthy = false;
      absl::StrAppend(&lines, "[-]", check.name, " failed: reason withheld\n");
      VLOG(1) << path << ": " << check.name << " failed: " << status;
    }
  }
  if (!excluded.empty()) {
    absl::StrAppend(&lines, "warn: some health checks cannot be excluded: no matches for ",
                    absl::StrJoin(excluded, ",",
                                  [](std::string* out, const std::string& name) {
                                    absl::StrAppend(out, "\"", name, "\"");
                                  }),
                    "\n");
  }
  if (!healthy) {
    response.status = 500;
    response.set_content(absl::StrCat(lines, path, " check failed\n"), kText);
  } else if (request.has_param("verbose")) {
    response.set_content(absl::StrCat(lines, path, " check passed\n"), kText);
  } else {
    response.set_content("ok", kText);
  }
}

void ServeCheck(const Check& check, httplib::Response& response) {
  const absl::Status status = check.run();
  if (status.ok()) {
    response.set_content("ok", kText);
  } else {
    response.status = 500;
    response.set_content(absl::StrCat("internal server error: ", status.message(), "\n"), kText);
  }
}

// Rejects a request in the form of Kubernetes' API.
void Refuse(const Verdict& verdict, httplib::Response& response) {
  const char* reason = verdict.http_status == 401   ? "Unauthorized"
                       : verdict.http_status == 403 ? "Forbidden"
                       : verdict.http_status == 503 ? "ServiceUnavailable"
                                                    : "InternalError";
  const nlohmann::json status = {{"kind", "Status"},
                                 {"apiVersion", "v1"},
                                 {"metadata", nlohmann::json::object()},
                                 {"status", "Failure"},
                                 {"message", verdict.message},
                                 {"reason", reason},
                                 {"code", verdict.http_status}};
  response.status = verdict.http_status;
  if (verdict.http_status == 401) response.set_header("WWW-Authenticate", "Bearer");
  // A path may contain invalid UTF-8, for which dump() would throw.
  response.set_content(status.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                       "application/json");
}

// Whether the request says that it has a body. Without either header, the library would read one
// until the client closes the connection, but only for methods that have handlers.
bool HasBody(const httplib::Request& request) {
  return request.has_header("Transfer-Encoding") ||
         (request.has_header("Content-Length") &&
          request.get_header_value("Content-Length") != "0");
}

// "" unless the header has the form `Bearer TOKEN`.
std::string BearerToken(const httplib::Request& request) {
  const std::string header = request.get_header_value("Authorization");
  absl::string_view rest = absl::StripAsciiWhitespace(header);
  const size_t blank = rest.find(' ');
  if (blank == absl::string_view::npos || !absl::EqualsIgnoreCase(rest.substr(0, blank), "Bearer"))
    return "";
  return std::string(absl::StripAsciiWhitespace(rest.substr(blank)));
}

// All values of `part` (NID_commonName, …) in a name.
std::vector<std::string> PartsOf(X509_NAME* name, int part) {
  std::vector<std::string> values;
  for (int i = -1; (i = X509_NAME_get_index_by_NID(name, part, i)) >= 0;) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i)));
    if (size < 0) continue;
    values.emplace_back(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  return values;
}

PageRequest Describe(const httplib::Request& request) {
  PageRequest described;
  described.verb = absl::AsciiStrToLower(request.method);
  described.path = request.path;
  described.bearer_token = BearerToken(request);
  X509* const shown = request.ssl == nullptr ? nullptr : VerifiedClient(request.ssl);
  if (shown == nullptr) return described;
  // As Kubernetes interprets certificates.
  X509_NAME* const subject = X509_get_subject_name(shown);
  const std::vector<std::string> names = PartsOf(subject, NID_commonName);
  if (!names.empty()) described.certificate_user = names.back();
  described.certificate_groups = PartsOf(subject, NID_organizationName);
  return described;
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions given) : options(std::move(given)) {
    ConnectionLimits limits;
    if (options.certificate != nullptr) {
      limits.per_peer = kThreads / 2;
    } else {
      limits.crowded = kPlainCrowded;
    }
    server = std::make_unique<BoundedServer>(std::move(options.certificate), limits);
  }

  // Rejects, before the library reads a body, what no page accepts: pages are read with GET or
  // HEAD, commands are sent with POST, and neither has a body. The library would read chunked
  // bodies, and those without a length, without a limit, also of methods and paths without a
  // handler.
  bool RefuseForm(const httplib::Request& request, httplib::Response& response) const {
    const bool is_command = commands.count(request.path) > 0;
    if (is_command ? request.method != "POST"
                   : request.method != "GET" && request.method != "HEAD") {
      response.status = 405;
      response.set_header("Allow", is_command ? "POST" : "GET, HEAD");
      response.set_content("405 method not allowed\n", kText);
      return true;
    }
    if (!HasBody(request)) return false;
    response.status = 413;
    response.set_content("413 a request to this server has no body\n", kText);
    return true;
  }

  // Rejects requests that the guard does not allow.
  httplib::Server::HandlerResponse Guard(const httplib::Request& request,
                                         httplib::Response& response) {
    constexpr auto kServe = httplib::Server::HandlerResponse::Unhandled;
    if (request.path == "/healthz" || request.path == "/livez" || request.path == "/readyz")
      return kServe;
    Verdict verdict;
    if (++in_guard <= static_cast<int>(kThreads / 2)) {
      verdict = options.guard(Describe(request));
    } else {
      verdict = {503, "too many requests wait for authorization"};
    }
    --in_guard;
    if (verdict.http_status == 200) return kServe;
    Refuse(verdict, response);
    return httplib::Server::HandlerResponse::Handled;
  }

  void AddHealth(const std::string& path, std::vector<Check>* checks) {
    if (checks->empty()) checks->push_back(Check{"ping", [] { return absl::OkStatus(); }});
    server->Get("/" + path,
                [path, checks](const httplib::Request& request, httplib::Response& response) {
                  ServeHealth(path, *checks, request, response);
                });
    // Check names are compared here: the library would interpret a path as a regular expression.
    server->Get("/" + path + "/(.+)",
                [checks](const httplib::Request& request, httplib::Response& response) {
                  for (const Check& check : *checks) {
                    if (check.name == request.matches[1].str()) return ServeCheck(check, response);
                  }
                  response.status = 404;
                });
  }

  void AddHandlers() {
    AddHealth("healthz", &options.healthz);
    AddHealth("livez", &options.livez);
    AddHealth("readyz", &options.readyz);
    AddPage("/metrics", kMetricsText, options.metrics);
    AddHostMetrics();
    AddPage("/configz", "application/yaml", options.configz);
    AddPage("/version", "application/json", [this] { return options.version_json; });
    AddExplain();
    AddQueue();
    AddHosts();
    AddIndex();
    server->set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          if (RefuseForm(request, response)) return httplib::Server::HandlerResponse::Handled;
          if (options.guard) return Guard(request, response);
          return httplib::Server::HandlerResponse::Unhandled;
        });
    server->set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (response.body.empty() && response.status == 404)
        response.set_content("404 page not found\n", kText);
    });
    server->set_default_headers({{"X-Content-Type-Options", "nosniff"}});
  }

  // The pages that this process serves, one a line.
  void AddIndex() {
    std::string text = "Pages of outboard-shim (docs/commands.md has commands that read them):\n";
    const auto line = [&text](bool is_served, absl::string_view path, absl::string_view what) {
      if (is_served) absl::StrAppend(&text, absl::StrFormat("%-42s %s\n", path, what));
    };
    line(true, "/healthz, /livez, /readyz", "health checks; ?verbose lists them");
    line(options.metrics != nullptr, "/metrics", "metrics for Prometheus");
    line(options.host_metrics != nullptr, "/metrics/hosts?host=NAME",
         "metrics of a plugin host that has a metricsAddress");
    line(options.configz != nullptr, "/configz", "the configuration in use");
    line(true, "/version", "the program's version");
    line(options.hosts != nullptr, "/hosts", "plugin hosts and which instance serves");
    line(options.queue != nullptr, "/queue?limit=N&pod=NAMESPACE/NAME", "pods that wait, and why");
    line(options.explain != nullptr, "/explain?pod=NAMESPACE/NAME", "a pod's last attempts");
    line(options.command_host != nullptr, "POST /hosts/swap?host=NAME",
         "lets another instance of a host serve, as outboard swap does");
    server->Get("/",
                [text = std::move(text)](const httplib::Request&, httplib::Response& response) {
                  response.set_content(text, kText);
                });
  }

  void AddHostMetrics() {
    if (!options.host_metrics) return;
    server->Get("/metrics/hosts",
                [this](const httplib::Request& request, httplib::Response& response) {
                  const std::string host = request.get_param_value("host");
                  if (host.empty()) {
                    response.status = 400;
                    response.set_content("host is required: /metrics/hosts?host=NAME\n", kText);
                    return;
                  }
                  absl::StatusOr<std::string> text = options.host_metrics(host);
                  if (text.ok()) {
                    response.set_header("Content-Type", kMetricsText);
                    response.body = *std::move(text);
                    return;
                  }
                  response.status = absl::IsNotFound(text.status()) ? 404 : 503;
                  response.set_content(absl::StrCat(text.status().message(), "\n"), kText);
                });
  }

  void AddExplain() {
    if (!options.explain) return;
    server->Get("/explain", [this](const httplib::Request& request, httplib::Response& response) {
      const std::string pod = request.get_param_value("pod");
      if (pod.find('/') == std::string::npos) {
        response.status = 400;
        response.set_content("pod is required: /explain?pod=NAMESPACE/NAME\n", kText);
        return;
      }
      const absl::StatusOr<std::string> known = options.explain(pod);
      if (known.ok()) return response.set_content(*known, "application/json");
      response.status = 404;
      const std::string note = FollowerNote();
      response.set_content(
          absl::StrCat(known.status().message(), note.empty() ? "" : "; ", note, "\n"), kText);
    });
  }

  std::string FollowerNote() const { return options.follower_note ? options.follower_note() : ""; }

  void AddQueue() {
    if (!options.queue) return;
    server->Get("/queue", [this](const httplib::Request& request, httplib::Response& response) {
      size_t limit = 0;
      if (request.has_param("limit") &&
          (!absl::SimpleAtoi(request.get_param_value("limit"), &limit) || limit == 0)) {
        response.status = 400;
        response.set_content("limit must be a positive number\n", kText);
        return;
      }
      const absl::StatusOr<std::string> queue =
          options.queue(limit, request.get_param_value("pod"));
      if (queue.ok()) return response.set_content(*queue, "application/json");
      response.status = 503;
      response.set_content(absl::StrCat(queue.status().message(), "\n"), kText);
    });
  }

  void AddHosts() {
    if (options.hosts) {
      server->Get("/hosts", [this](const httplib::Request&, httplib::Response& response) {
        const absl::StatusOr<std::string> hosts = options.hosts();
        if (hosts.ok()) return response.set_content(*hosts, "application/json");
        response.status = 503;
        response.set_content(absl::StrCat(hosts.status().message(), "\n"), kText);
      });
    }
    if (!options.command_host) return;
    AddCommand("/hosts/swap", HostCommand::Kind::kSwap);
    AddCommand("/hosts/rollback", HostCommand::Kind::kRollback);
    AddCommand("/hosts/clear-quarantine", HostCommand::Kind::kClearQuarantine);
    // The old path, for one release.
    AddCommand(kOldClearQuarantine, HostCommand::Kind::kClearQuarantine);
  }

  void AddCommand(const char* path, HostCommand::Kind kind) {
    commands.insert(path);
    // A handler with a reader, which does not call it: the library then reads no body.
    server->Post(path, [this, kind](const httplib::Request& request, httplib::Response& response,
                                    const httplib::ContentReader&) {
      const auto refuse = [&response](int status, absl::string_view why) {
        response.status = status;
        response.set_content(absl::StrCat(why, "\n"), kText);
      };
      if (request.get_header_value(kCommandHeader) != "1")
        return refuse(403, absl::StrCat("header ", kCommandHeader, ": 1 is required"));
      if (request.path == kOldClearQuarantine) {
        LOG(WARNING) << "Path " << request.path
                     << " is deprecated and will be removed; use /hosts/clear-quarantine";
      }
      HostCommand command;
      command.kind = kind;
      command.host = request.get_param_value("host");
      command.instance = request.get_param_value("instance");
      if (command.host.empty()) return refuse(400, "host is required: ?host=NAME");
      const absl::Status done = options.command_host(command);
      if (done.ok()) {
        const std::string note = FollowerNote();
        return response.set_content(note.empty() ? "ok\n" : absl::StrCat("ok, but ", note, "\n"),
                                    kText);
      }
      refuse(absl::IsNotFound(done)             ? 404
             : absl::IsFailedPrecondition(done) ? 409
                                                : 503,
             done.message());
    });
  }

  void AddPage(const char* path, const char* type, std::function<std::string()> text) {
    if (!text) return;
    server->Get(
        path, [type, text = std::move(text)](const httplib::Request&, httplib::Response& response) {
          response.set_content(text(), type);
        });
  }

  ServerOptions options;
  std::set<std::string> commands;  // paths for POST
  std::atomic<int> in_guard{0};
  std::unique_ptr<BoundedServer> server;
  ServingThread serving;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  std::string host;
  int port = 0;
  const bool tls = options.certificate != nullptr;
  const std::string socket = SocketPathOf(options.address);
  absl::Status status = absl::OkStatus();
  if (socket.empty()) {
    status = ParseAddress(options.address, tls, &host, &port);
  } else if (tls) {
    status = absl::InvalidArgumentError("a Unix socket is served without a certificate");
  }
  if (!status.ok()) return status;
  if (tls && !options.guard)
    return absl::InvalidArgumentError("a server with a certificate needs a guard");

  auto impl = std::make_unique<Impl>(std::move(options));
  httplib::Server& server = *impl->server;
  if (!server.is_valid()) return absl::InternalError("TLS setup failed");
  server.set_payload_max_length(0);
  impl->AddHandlers();
  const ServingBounds bounds = {kThreads, kMaxWaiting, impl->server->crowded()};
  status = socket.empty() ? impl->serving.Start(&server, host, port, bounds)
                          : impl->serving.StartUnix(&server, socket, bounds);
  if (!status.ok()) return status;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { Stop(); }

int Server::port() const { return impl_->serving.port(); }

void Server::Stop() { impl_->serving.Stop(); }

}  // namespace outboard::http
