#include "shim/http/server.h"

#include <arpa/inet.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "shim/http/testing/flood.h"

namespace outboard::http {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// The whole answer to `request`, including headers.
std::string Exchange(int port, const std::string& request) {
  const int fd = Connect(port);
  if (fd < 0) return "no connection";
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[4096];
  for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
    answer.append(buffer, static_cast<size_t>(n));
  close(fd);
  return answer;
}
std::string Get(int port, const std::string& path) {
  return Exchange(port, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
}

class ServerTest : public ::testing::Test {
 protected:
  void Start() {
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.readyz = {{"leaderElection", [] { return absl::OkStatus(); }},
                      {"sched-handler-sync",
                       [this]() -> absl::Status {
                         return synced_ ? absl::OkStatus()
                                        : absl::UnavailableError("informers are not synced");
                       },
                       [this] { return std::string(note_.load()); }}};
    options.metrics = [] { return "m 1\n"; };
    options.host_metrics = [](const std::string& host) -> absl::StatusOr<std::string> {
      if (host == "main") return "plugin 1\n";
      if (host == "ill") return absl::UnavailableError("it does not answer");
      return absl::NotFoundError("no such host");
    };
    options.configz = [] { return "kind: X\n"; };
    options.version_json = R"({"gitVersion":"v0"})";
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Get(const std::string& path) { return http::Get(server_->port(), path); }

  std::atomic<bool> synced_{true};
  std::atomic<const char*> note_{""};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, RelaysTheMetricsOfOneHost) {
  Start();
  EXPECT_THAT(Get("/metrics/hosts?host=main"),
              AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Content-Type: text/plain; version="),
                    EndsWith("\r\n\r\nplugin 1\n")));
  EXPECT_THAT(Get("/metrics/hosts"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get("/metrics/hosts?host=other"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/metrics/hosts?host=ill"),
              AllOf(StartsWith("HTTP/1.1 503"), EndsWith("it does not answer\n")));
  EXPECT_THAT(Get("/metrics"), EndsWith("\r\n\r\nm 1\n"));
}

TEST_F(ServerTest, HealthIsAsKubernetesHasIt) {
  Start();
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(Get("/healthz"), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(Get("/livez?verbose"), EndsWith("\r\n\r\n[+]ping ok\nlivez check passed\n"));
  EXPECT_THAT(
      Get("/readyz?verbose=1"),
      EndsWith("\r\n\r\n[+]leaderElection ok\n[+]sched-handler-sync ok\nreadyz check passed\n"));
  EXPECT_THAT(Get("/readyz/sched-handler-sync"), EndsWith("\r\n\r\nok"));
  note_ = "objects that cannot be decoded: pods 1";
  EXPECT_THAT(Get("/readyz?verbose"),
              EndsWith("[+]sched-handler-sync ok: objects that cannot be decoded: pods 1\n"
                       "readyz check passed\n"));
  EXPECT_THAT(Get("/readyz"), EndsWith("\r\n\r\nok"));

  synced_ = false;
  const std::string failed = Get("/readyz");
  EXPECT_THAT(failed, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(
      failed,
      EndsWith("\r\n\r\n[+]leaderElection ok\n[-]sched-handler-sync failed: reason withheld\n"
               "readyz check failed\n"));
  EXPECT_THAT(Get("/readyz/sched-handler-sync"),
              EndsWith("internal server error: informers are not synced\n"));
  EXPECT_THAT(Get("/readyz/leaderElection"), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(Get("/readyz?exclude=sched-handler-sync"), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(Get("/readyz?verbose&exclude=sched-handler-sync&exclude=x"),
              EndsWith("[+]leaderElection ok\n[+]sched-handler-sync excluded: ok\n"
                       "warn: some health checks cannot be excluded: no matches for \"x\"\nreadyz "
                       "check passed\n"));
  EXPECT_THAT(Get("/healthz"), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(Get("/readyz/other"), StartsWith("HTTP/1.1 404"));
}

TEST_F(ServerTest, ServesPages) {
  Start();
  EXPECT_THAT(Get("/metrics"), HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"));
  EXPECT_THAT(Get("/metrics"), EndsWith("\r\n\r\nm 1\n"));
  EXPECT_THAT(Get("/configz"), EndsWith("\r\n\r\nkind: X\n"));
  EXPECT_THAT(Get("/version"), EndsWith("\r\n\r\n{\"gitVersion\":\"v0\"}"));
  EXPECT_THAT(Get("/metricsx"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Get("/etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(
      Exchange(server_->port(), "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
      StartsWith("HTTP/1.1 405"));
}

TEST_F(ServerTest, TheRootListsThePagesThatAreServed) {
  Start();
  const std::string index = Get("/");
  EXPECT_THAT(index, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(index, AllOf(HasSubstr("\n/metrics "), HasSubstr("\n/configz "),
                           HasSubstr("/healthz, /livez, /readyz ")));
  EXPECT_THAT(index, Not(HasSubstr("/queue")));  // which this server does not have
}

// The server answers before the body comes. It never comes here, so a server that reads it would
// answer only after a timeout, and with another status.
TEST_F(ServerTest, RefusesBodiesWithoutReadingThem) {
  Start();
  const std::string bodies[] = {"Transfer-Encoding: chunked\r\n", "Content-Length: 1073741824\r\n",
                                ""};
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz/sched-handler-sync",
                           "/metrics", "/configz", "/version", "/hosts/swap", "/unknown"}) {
    for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "PRI"}) {
      for (const std::string& body : bodies) {
        EXPECT_THAT(
            Exchange(server_->port(),
                     absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: x\r\n", body, "\r\n")),
            AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")))
            << method << " " << path << " " << body;
      }
    }
  }
  for (const char* body : {"Transfer-Encoding: chunked\r\n", "Content-Length: 1\r\n"}) {
    EXPECT_THAT(Exchange(server_->port(),
                         absl::StrCat("GET /healthz HTTP/1.1\r\nHost: x\r\n", body, "\r\n")),
                StartsWith("HTTP/1.1 413"));
  }
  EXPECT_THAT(Get("/healthz"), EndsWith("ok"));
}

// Clients that send on do not fill the server's memory: refused bodies, and header lines that the
// library would read to their end.
TEST_F(ServerTest, WhatHasNoEndIsNotKept) {
  Start();
  const size_t before = testing::ResidentBytes();
  const std::string chunk = absl::StrCat("100000\r\n", std::string(1 << 20, 'x'), "\r\n");
  EXPECT_LT(testing::Flood(
                server_->port(),
                "POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", chunk),
            testing::kKernelBuffers);
  for (const char* head : {"GET /", "GET /healthz HTTP/1.1\r\nX: "}) {
    EXPECT_LT(testing::Flood(server_->port(), head, std::string(1 << 20, 'x')),
              testing::kKernelBuffers)
        << head;
  }
  // Many short header lines do not get around the limit.
  EXPECT_LT(testing::Flood(server_->port(), "GET /healthz HTTP/1.1\r\n",
                           [] {
                             std::string lines;
                             for (int i = 0; i < 1000; ++i) lines += "X: yyyyyyyyyyyyyyyyyyyyy\r\n";
                             return lines;
                           }()),
            testing::kKernelBuffers);
  EXPECT_LT(testing::ResidentBytes(), before + testing::kFloodedGrowth);
  EXPECT_THAT(Get("/healthz"), EndsWith("ok"));
}

TEST_F(ServerTest, RefusesWhatIsTooLargeOrNoHttp) {
  Start();
  EXPECT_THAT(Get("/" + std::string(9000, 'a')), StartsWith("HTTP/1.1 414"));
  EXPECT_THAT(Exchange(server_->port(),
                       "GET /metrics HTTP/1.1\r\nX: " + std::string(9000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  std::string many = "GET /healthz HTTP/1.1\r\n";
  while (many.size() < 100000) many += "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n";
  EXPECT_THAT(Exchange(server_->port(), many), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Exchange(server_->port(), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get("/healthz"), EndsWith("ok"));
}

TEST_F(ServerTest, ManyConnectionsAtOnce) {
  Start();
  std::atomic<int> ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        if (Get("/healthz").find("200 OK") != std::string::npos) ++ok;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ok, 400);
}

// Clients that send their request byte by byte or do not read a large answer give their threads to
// others; without that they would keep them for ten seconds, eight at a time.
TEST(Server, SlowClientsGiveWay) {
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.metrics = [] { return std::string(size_t{16} << 20, 'm'); };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<int> slow;
  const absl::Time begun = absl::Now();
  for (int i = 0; i < 60; ++i) {
    slow.push_back(Connect((*server)->port()));
    const std::string request =
        i % 2 == 0 ? "GET /healthz HTTP/1.1\r\nX: " : "GET /metrics HTTP/1.1\r\n\r\n";
    send(slow.back(), request.data(), request.size(), MSG_NOSIGNAL);
  }
  EXPECT_THAT(Get((*server)->port(), "/healthz"), EndsWith("\r\n\r\nok"));
  EXPECT_LT(absl::Now() - begun, absl::Seconds(30));
  // Without others a client may take its time.
  const int alone = Connect((*server)->port());
  std::string answer;
  for (const char byte : absl::string_view("GET /healthz HTTP/1.1\r\n\r\n")) {
    send(alone, &byte, 1, MSG_NOSIGNAL);
    absl::SleepFor(absl::Milliseconds(40));
  }
  char buffer[4096];
  for (ssize_t n; (n = recv(alone, buffer, sizeof(buffer), 0)) > 0;)
    answer.append(buffer, static_cast<size_t>(n));
  EXPECT_THAT(answer, EndsWith("ok"));
  close(alone);
  for (const int fd : slow) close(fd);
}

TEST(Server, StopEndsRequestsUnderWay) {
  absl::Notification entered, leave;
  ServerOptions options;
  options.address = "localhost:0";
  options.metrics = [&] {
    entered.Notify();
    leave.WaitForNotification();
    return std::string("late");
  };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  std::string answer;
  std::thread client([&] { answer = Get(port, "/metrics"); });
  entered.WaitForNotification();
  std::thread stopper([&] { (*server)->Stop(); });
  leave.Notify();
  stopper.join();
  client.join();
  EXPECT_THAT(answer, EndsWith("late"));
  EXPECT_EQ(Connect(port), -1);
  (*server)->Stop();  // the second call has no effect
}

TEST(Server, AcceptsTheOldPathOfClearQuarantineWithAWarning) {
  class Sink : public google::LogSink {
   public:
    void send(google::LogSeverity severity, const char*, const char*, int,
              const google::LogMessageTime&, const char* message, size_t length) override {
      if (severity == google::GLOG_WARNING) warnings.emplace_back(message, length);
    }
    std::vector<std::string> warnings;
  };
  ServerOptions options;
  options.address = "127.0.0.1:0";
  std::vector<std::string> cleared;
  options.command_host = [&](const HostCommand& command) {
    if (command.kind == HostCommand::Kind::kClearQuarantine) cleared.push_back(command.host);
    return absl::OkStatus();
  };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  Sink sink;
  google::AddLogSink(&sink);
  for (const char* path : {"/hosts/clear-quarantine", "/hosts/forgive"}) {
    EXPECT_THAT(Exchange((*server)->port(),
                         absl::StrCat("POST ", path,
                                      "?host=a HTTP/1.1\r\nHost: localhost\r\nX-Outboard-Command: "
                                      "1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")),
                StartsWith("HTTP/1.1 200 OK"))
        << path;
  }
  google::RemoveLogSink(&sink);
  EXPECT_THAT(cleared, ElementsAre("a", "a"));
  const auto send_command = [&](const char* method, const char* body) {
    return Exchange((*server)->port(),
                    absl::StrCat(method, " /hosts/clear-quarantine?host=b HTTP/1.1\r\nHost: x\r\n",
                                 "X-Outboard-Command: 1\r\n", body, "\r\n"));
  };
  EXPECT_THAT(send_command("POST", "Transfer-Encoding: chunked\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(send_command("POST", "Content-Length: 9\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(send_command("PUT", ""), AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: POST")));
  EXPECT_THAT(cleared, ElementsAre("a", "a"));
  EXPECT_THAT(send_command("POST", ""), StartsWith("HTTP/1.1 200"));  // as `curl -X POST` sends it
  EXPECT_THAT(cleared, ElementsAre("a", "a", "b"));
  EXPECT_THAT(sink.warnings, ElementsAre(HasSubstr("/hosts/forgive is deprecated")));
}

TEST(Server, RefusesAddresses) {
  for (const char* address : {"0.0.0.0:80", "10.0.0.1:80", "example.org:80", ":80", "127.0.0.1",
                              "127.0.0.1:99999", "[::1:5", "127.0.0.1:x", ""}) {
    ServerOptions options;
    options.address = address;
    EXPECT_EQ(Server::Start(std::move(options)).status().code(), absl::StatusCode::kInvalidArgument)
        << address;
  }
}

TEST(Server, ReportsThatAPortIsTaken) {
  ServerOptions options;
  options.address = "127.0.0.1:0";
  absl::StatusOr<std::unique_ptr<Server>> first = Server::Start(std::move(options));
  ASSERT_TRUE(first.ok());
  ServerOptions again;
  again.address = absl::StrCat("127.0.0.1:", (*first)->port());
  EXPECT_EQ(Server::Start(std::move(again)).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace outboard::http
