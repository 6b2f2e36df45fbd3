#include "plugin_host/metrics/metrics_server.h"

#include <glog/logging.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace outboard::host_metrics {
namespace {

constexpr time_t kIoSeconds = 2;  // for a request, and for each write of the answer
constexpr size_t kMaxHeadBytes = size_t{64} << 10;
constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

// The accepting thread also answers: scrapers are few, and can wait for each other.
class OneByOne : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> job) override { job(); }
  void shutdown() override {}
};

// A request's line and headers as received, and the socket for the answer.
class Exchange final : public httplib::Stream {
 public:
  Exchange(socket_t socket, std::string request) : socket_(socket), request_(std::move(request)) {}
  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* data, size_t size) override {
    const size_t copied = request_.copy(data, size, read_);
    read_ += copied;
    return static_cast<ssize_t>(copied);
  }
  // Waits as long as the socket's own limit.
  ssize_t write(const char* data, size_t size) override {
    return send(socket_, data, size, MSG_NOSIGNAL);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  const socket_t socket_;
  const std::string request_;
  size_t read_ = 0;
};

// The library reads a header line without an end into memory for as long as it comes, and waits
// for each byte separately. This one receives the headers with a limit first; it serves no bodies.
class BoundedServer final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override {
    const timeval wait = {kIoSeconds, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    Exchange exchange(socket, ReceiveHead(socket));
    bool closed = false;
    const bool served =
        process_request(exchange, /*close_connection=*/true, closed, [](httplib::Request&) {});
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return served;
  }

  // To the end of the headers, or what came until a limit; the library answers 400 to a part.
  static std::string ReceiveHead(socket_t socket) {
    std::string head;
    const absl::Time deadline = absl::Now() + absl::Seconds(kIoSeconds);
    std::array<char, 4096> piece;
    while (head.size() < kMaxHeadBytes && absl::Now() < deadline) {
      const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
      if (got <= 0) break;
      head.append(piece.data(), static_cast<size_t>(got));
      if (absl::StrContains(head, "\r\n\r\n")) break;
    }
    return head;
  }
};

}  // namespace

struct MetricsServer::Impl {
  BoundedServer server;
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
