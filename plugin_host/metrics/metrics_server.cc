#include "plugin_host/metrics/metrics_server.h"

#include <glog/logging.h>
#include <httplib.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace outboard::host_metrics {
namespace {

constexpr time_t kIoSeconds = 2;
constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

// The accepting thread also answers: scrapers are few, and can wait for each other.
class OneByOne : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> job) override { job(); }
  void shutdown() override {}
};

}  // namespace

struct MetricsServer::Impl {
  httplib::Server server;
  std::atomic<bool> ended{false};
  std::thread thread;
};

MetricsServer::MetricsServer() : impl_(std::make_unique<Impl>()) {}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(
    const std::string& address, const PrometheusMetrics* metrics) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535 || (host != "127.0.0.1" && host != "[::1]")) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-address ", address,
                     ": must be 127.0.0.1:PORT or [::1]:PORT, because it has neither TLS nor "
                     "authorisation"));
  }
  std::unique_ptr<MetricsServer> server(new MetricsServer());
  httplib::Server& http = server->impl_->server;
  http.new_task_queue = [] { return new OneByOne(); };
  http.set_read_timeout(kIoSeconds);
  http.set_write_timeout(kIoSeconds);
  http.set_keep_alive_timeout(kIoSeconds);
  http.set_keep_alive_max_count(1);  // So that stopping does not wait for idle connections.
  http.set_payload_max_length(0);
  // The library's default lets a second process share the port.
  http.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  // Refused before the library reads a body, for which it has no limit if the body is chunked.
  http.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    const bool reads = request.method == "GET" || request.method == "HEAD";
    if (reads && !request.has_header("Transfer-Encoding"))
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = reads ? 413 : 405;
    if (!reads) response.set_header("Allow", "GET, HEAD");
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get("/metrics", [metrics](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics->Text(), kTextFormat);
  });
  const char* const bind_to = host == "[::1]" ? "::1" : "127.0.0.1";
  if (port == 0) {
    port = http.bind_to_any_port(bind_to);
  } else if (!http.bind_to_port(bind_to, port)) {
    port = -1;
  }
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("--metrics-address ", address, ": cannot listen there"));
  }
  server->address_ = absl::StrCat(host, ":", port);
  server->impl_->thread = std::thread([impl = server->impl_.get()] {
    if (!impl->server.listen_after_bind()) LOG(ERROR) << "Metrics server stopped unexpectedly";
    impl->ended = true;
  });
  // A stop before it accepts would be ignored.
  while (!http.is_running() && !server->impl_->ended) std::this_thread::yield();
  return server;
}

MetricsServer::~MetricsServer() {
  if (!impl_->thread.joinable()) return;
  impl_->server.stop();
  impl_->thread.join();
}

}  // namespace outboard::host_metrics
