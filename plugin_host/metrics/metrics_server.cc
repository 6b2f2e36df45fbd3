#include "plugin_host/metrics/metrics_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glog/logging.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

namespace outboard::host_metrics {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(2);  // for a request, and for the answer
// The same while other clients wait. All are on this machine.
constexpr absl::Duration kCrowdedPatience = absl::Milliseconds(50);
constexpr size_t kMaxHeadBytes = size_t{64} << 10;
constexpr char kTextFormat[] = "text/plain; version=0.0.4; charset=utf-8";

// An IPv4 address, or an IPv6 address in brackets, without them; empty: neither.
std::string BareAddress(const std::string& host) {
  in_addr v4 = {};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return host;
  absl::string_view bare = host;
  if (!absl::ConsumePrefix(&bare, "[") || !absl::ConsumeSuffix(&bare, "]")) return "";
  in6_addr v6 = {};
  return inet_pton(AF_INET6, std::string(bare).c_str(), &v6) == 1 ? std::string(bare) : "";
}

// The accepting thread also answers: scrapers are few, and can wait for each other.
class OneByOne : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> job) override { job(); }
  void shutdown() override {}
};

// Waits for one client after the other, for as long as the next ones leave time for.
class Turn {
 public:
  Turn(socket_t client, socket_t listening) : client_(client), listening_(listening) {}
  // Waits until the client's socket is ready for `events`. False if its time is over.
  bool Await(short events) const {
    while (true) {
      const absl::Duration spent = SteadyNow() - began_;
      // First only for the client: a waiting connection would wake each poll.
      const bool is_patient = spent < kCrowdedPatience;
      const absl::Duration left = (is_patient ? kCrowdedPatience : kPatience) - spent;
      if (left <= absl::ZeroDuration()) return false;
      pollfd wanted[] = {{client_, events, 0}, {is_patient ? -1 : listening_, POLLIN, 0}};
      const int ready = poll(wanted, 2, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
      if (ready < 0 && errno != EINTR) return false;
      if (wanted[1].revents != 0) return false;
      if (wanted[0].revents != 0) return true;
    }
  }

 private:
  // Setting the wall clock must not end or lengthen a turn.
  static absl::Duration SteadyNow() {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  socket_t client_;
  socket_t listening_;
  absl::Duration began_ = SteadyNow();
};

// A request's line and headers as received, and the socket for the answer.
class Exchange final : public httplib::Stream {
 public:
  Exchange(socket_t socket, socket_t listening, std::string request)
      : socket_(socket), listening_(listening), request_(std::move(request)) {}
  bool is_readable() const override { return read_ < request_.size(); }
  bool is_writable() const override { return AwaitReader(); }
  ssize_t read(char* data, size_t size) override {
    const size_t copied = request_.copy(data, size, read_);
    read_ += copied;
    return static_cast<ssize_t>(copied);
  }
  ssize_t write(const char* data, size_t size) override {
    while (true) {
      const ssize_t sent = send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0 || (errno != EAGAIN && errno != EINTR) || !AwaitReader()) return sent;
    }
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool AwaitReader() const {
    if (!answer_.has_value()) answer_.emplace(socket_, listening_);
    return answer_->Await(POLLOUT);
  }

  const socket_t socket_;
  const socket_t listening_;
  mutable std::optional<Turn> answer_;  // since its first byte
  const std::string request_;
  size_t read_ = 0;
};

// The library reads a header line without an end into memory for as long as it comes, and waits
// for each byte separately. This one receives the headers with a limit first; it serves no bodies.
class BoundedServer final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override {
    const socket_t listening = svr_sock_;
    Exchange exchange(socket, listening, ReceiveHead(socket, listening));
    bool closed = false;
    const bool served =
        process_request(exchange, /*close_connection=*/true, closed, [](httplib::Request&) {});
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return served;
  }

  // To the end of the headers, or what came until a limit; the library answers 400 to a part.
  static std::string ReceiveHead(socket_t socket, socket_t listening) {
    std::string head;
    const Turn turn(socket, listening);
    std::array<char, 4096> piece;
    while (head.size() < kMaxHeadBytes && turn.Await(POLLIN)) {
      const ssize_t got = recv(socket, piece.data(), piece.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
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
    const std::string& address, const PrometheusMetrics* metrics, bool unprotected) {
  const size_t colon = address.rfind(':');
  const std::string host = address.substr(0, colon);
  int port = -1;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      port < 0 || port > 65535 || (!unprotected && host != "127.0.0.1" && host != "[::1]") ||
      (unprotected && BareAddress(host).empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--metrics-address ", address,
                     unprotected ? ": must be IP:PORT or [IP]:PORT"
                                 : ": must be 127.0.0.1:PORT or [::1]:PORT, because it has neither "
                                   "TLS nor authorisation"));
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
  const std::string bind_to = BareAddress(host);
  if (port == 0) {
    port = http.bind_to_any_port(bind_to.c_str());
  } else if (!http.bind_to_port(bind_to.c_str(), port)) {
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
