#include "shim/http/metrics_relay.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"

namespace outboard::http::metrics_relay_test {
namespace {

using ::testing::HasSubstr;

// A metrics server that does what the test wants with each connection, after it has read the
// request.
class HostileServer {
 public:
  explicit HostileServer(std::function<void(int connection)> serve) : serve_(std::move(serve)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 8), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~HostileServer() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (std::thread& serving : serving_) serving.join();
    close(listener_);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  int accepted() const { return accepted_; }

 private:
  void Accept() {
    for (int connection; (connection = accept(listener_, nullptr, nullptr)) >= 0;) {
      ++accepted_;
      serving_.emplace_back([this, connection] {
        char request[4096];
        EXPECT_GT(recv(connection, request, sizeof(request), 0), 0);
        serve_(connection);
        close(connection);
      });
    }
  }
  const std::function<void(int)> serve_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> accepted_{0};
  std::thread accepting_;
  std::vector<std::thread> serving_;
};

bool Send(int connection, const std::string& text) {
  return send(connection, text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

// Waits until the client has closed its side.
void AwaitEnd(int connection) {
  char byte;
  while (recv(connection, &byte, 1, 0) > 0) {
  }
}

constexpr char kBegin[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n";

absl::StatusOr<std::string> Get(const HostileServer& server, MetricsRelayLimits limits = {}) {
  return MetricsRelay(limits).Get(server.address());
}

TEST(MetricsRelay, ReturnsTheText) {
  const HostileServer server([](int connection) {
    Send(connection, absl::StrCat(kBegin, "Content-Length: 9\r\n\r\nplugin 1\n"));
  });
  const absl::StatusOr<std::string> text = Get(server);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "plugin 1\n");
}

TEST(MetricsRelay, BoundsTheBody) {
  MetricsRelayLimits limits;
  limits.max_bytes = 1000;
  const HostileServer full([](int connection) {
    Send(connection, absl::StrCat(kBegin, "\r\n", std::string(1000, 'x')));
  });
  EXPECT_EQ(Get(full, limits)->size(), 1000u);
  const HostileServer endless([](int connection) {
    Send(connection, absl::StrCat(kBegin, "\r\n"));
    while (Send(connection, std::string(1 << 16, 'x'))) {
    }
  });
  EXPECT_THAT(Get(endless, limits).status().message(), HasSubstr("longer than 1000 bytes"));
}

TEST(MetricsRelay, BoundsTheHeaders) {
  for (const char* part : {"x", "X: y\r\n"}) {
    const HostileServer server([part](int connection) {
      std::string piece;
      while (piece.size() < 1 << 16) piece += part;
      Send(connection, absl::StrCat(kBegin, "X: "));
      while (Send(connection, piece)) {
      }
    });
    EXPECT_TRUE(absl::IsUnavailable(Get(server).status())) << part;
  }
}

TEST(MetricsRelay, BoundsTheTime) {
  MetricsRelayLimits limits;
  limits.timeout = absl::Milliseconds(200);
  const HostileServer silent(AwaitEnd);
  EXPECT_THAT(Get(silent, limits).status().message(), HasSubstr("Timeout was reached"));
  // A byte now and then does not prolong it.
  const HostileServer slow([](int connection) {
    Send(connection, absl::StrCat(kBegin, "\r\n"));
    pollfd end = {connection, POLLIN, 0};
    while (poll(&end, 1, 20) == 0 && Send(connection, "x")) {
    }
  });
  EXPECT_THAT(Get(slow, limits).status().message(), HasSubstr("Timeout was reached"));
}

TEST(MetricsRelay, FollowsNoRedirect) {
  const HostileServer elsewhere(
      [](int connection) { Send(connection, absl::StrCat(kBegin, "Content-Length: 0\r\n\r\n")); });
  const HostileServer server([&](int connection) {
    Send(connection, absl::StrCat("HTTP/1.1 302 Found\r\nLocation: http://", elsewhere.address(),
                                  "/metrics\r\nContent-Length: 0\r\n\r\n"));
  });
  EXPECT_THAT(Get(server).status().message(), HasSubstr("status 302"));
  EXPECT_EQ(elsewhere.accepted(), 0);
}

TEST(MetricsRelay, RejectsWhatIsNotACompleteAnswer) {
  for (const char* answer : {"", "nonsense", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nplugin",
                             "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplu"}) {
    const HostileServer server([answer](int connection) { Send(connection, answer); });
    EXPECT_TRUE(absl::IsUnavailable(Get(server).status())) << answer;
  }
  std::string closed;
  {
    const HostileServer server(AwaitEnd);
    closed = server.address();
  }
  EXPECT_THAT(MetricsRelay().Get(closed).status().message(), HasSubstr(closed));
}

TEST(MetricsRelay, ReadsFewHostsAtATime) {
  MetricsRelayLimits limits;
  limits.timeout = absl::Minutes(1);
  limits.max_concurrent = 2;
  MetricsRelay relay(limits);
  std::atomic<bool> may_answer{false};
  absl::BlockingCounter both_read(2);
  const HostileServer server([&](int connection) {
    both_read.DecrementCount();
    may_answer.wait(false);
    Send(connection, absl::StrCat(kBegin, "\r\nplugin 1\n"));
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] { EXPECT_TRUE(relay.Get(server.address()).ok()); });
  both_read.Wait();
  EXPECT_TRUE(absl::IsResourceExhausted(relay.Get(server.address()).status()));
  may_answer = true;
  may_answer.notify_all();
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace outboard::http::metrics_relay_test
