#include "shim/kube/curl_api_client.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/clock.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::kube {
namespace {

using testing::FakeApiServer;
using testing::Fault;

CurlApiClientOptions NoLimit() {
  CurlApiClientOptions options;
  options.qps = -1;
  return options;
}

ApiRequest Get(std::string path) {
  ApiRequest request;
  request.path = std::move(path);
  return request;
}

ApiRequest CreatePod(const std::string& name) {
  ApiRequest request;
  request.method = Method::kPost;
  request.path = "/api/v1/namespaces/ns/pods";
  request.body = absl::StrCat(R"({"metadata":{"name":")", name, R"("}})");
  return request;
}

TEST(CurlApiClient, SendsMethodPathHeadersAndBody) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  auto created = client.Call(CreatePod("a"));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->http_status, 201);
  EXPECT_EQ(created->content_type, "application/json");
  ApiRequest patch;
  patch.method = Method::kPatch;
  patch.path = "/api/v1/namespaces/ns/pods/a/status";
  patch.content_type = std::string(kStrategicMergePatch);
  patch.body = R"({"status":{"nominatedNodeName":"n1"}})";
  ASSERT_TRUE(client.Call(std::move(patch))->ok());
  EXPECT_EQ(server.Get("pods", "ns/a")["status"]["nominatedNodeName"], "n1");
  const auto log = server.Requests();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[1].method, "PATCH");
  EXPECT_EQ(log[1].headers.at("content-type"), kStrategicMergePatch);
  EXPECT_EQ(log[1].headers.at("user-agent"), "outboard-shim");
  EXPECT_EQ(log[1].headers.count("accept-encoding"), 0u);
  ApiRequest remove;
  remove.method = Method::kDelete;
  remove.path = "/api/v1/namespaces/ns/pods/a";
  ASSERT_TRUE(client.Call(std::move(remove))->ok());
  EXPECT_EQ(client.Call(Get("/api/v1/namespaces/ns/pods/a"))->http_status, 404);
}

// Such a path was built from a name that is not one: "..", or a namespace that is empty.
TEST(CurlApiClient, DoesNotSendAPathThatLeadsElsewhere) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  for (const char* path :
       {"/api/v1/namespaces/ns/pods/..", "/api/v1/namespaces/./pods/a",
        "/api/v1/namespaces//pods/a", "/api/v1/namespaces/ns/pods/%2e%2E/secrets/a",
        "/api/v1/nodes/?limit=1", "api/v1/nodes"}) {
    const auto answer = client.Call(Get(path));
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << path << ": " << answer.status();
    EXPECT_EQ(DeliveryOf(answer.status()), Delivery::kNotSent) << path;
  }
  EXPECT_EQ(server.Requests().size(), 0u);
  // Dots inside a name are usual.
  EXPECT_EQ(client.Call(Get("/api/v1/nodes/..a?x=/../"))->http_status, 404);
}

TEST(CurlApiClient, ErrorAnswersAreAnswers) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  ASSERT_TRUE(client.Call(CreatePod("a"))->ok());
  auto again = client.Call(CreatePod("a"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->http_status, 409);
  EXPECT_EQ(ToStatus(*again).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ToStatus(*client.Call(Get("/api/v1/nodes/x"))).code(), absl::StatusCode::kNotFound);
}

TEST(CurlApiClient, ErrorAnswersAreReadInEitherEncoding) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  ASSERT_TRUE(client.Call(CreatePod("a"))->ok());
  const auto create_again = [&](absl::string_view accept) {
    ApiRequest request = CreatePod("a");
    request.accept = std::string(accept);
    return *client.Call(std::move(request));
  };
  const ApiResponse json = create_again(kJson);
  const ApiResponse protobuf = create_again(kMetadataOnly);
  EXPECT_EQ(json.content_type, kJson);
  EXPECT_EQ(protobuf.content_type, kProtobuf);
  EXPECT_EQ(ToStatus(protobuf), ToStatus(json));
  EXPECT_EQ(ToStatus(protobuf).code(), absl::StatusCode::kAlreadyExists);
  ApiResponse broken = protobuf;
  broken.body.resize(broken.body.size() / 2);
  EXPECT_EQ(ToStatus(broken).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(ToStatus(broken).message(), "no message (HTTP 409)");
}

TEST(CurlApiClient, ALostAnswerIsOfUnknownDeliveryAndNotRetriedForWrites) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.method = "POST";
  fault.drop_answer = true;
  server.Inject(fault);
  auto lost = client.Call(CreatePod("a"));
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(DeliveryOf(lost.status()), Delivery::kUnknown);
  EXPECT_EQ(server.Count("POST", "/pods"), 1);
  EXPECT_FALSE(server.Get("pods", "ns/a").is_null());
}

TEST(CurlApiClient, ATruncatedAnswerIsAnError) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  server.Put("pods", {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}});
  for (size_t bytes = 1; bytes < 200; bytes += 7) {
    Fault fault;
    fault.method = "GET";
    fault.cut_after = bytes;
    server.Inject(fault);
    ApiRequest request = Get("/api/v1/namespaces/ns/pods/a");
    request.retry = false;
    auto cut = client.Call(std::move(request));
    EXPECT_FALSE(cut.ok()) << "after " << bytes << " bytes";
  }
}

TEST(CurlApiClient, AnUnreachableServerIsSurelyNotSent) {
  ClientConfig config;
  {
    FakeApiServer gone;
    config = gone.Config();
  }
  CurlApiClient client(config, NoLimit());
  auto refused = client.Call(CreatePod("a"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(DeliveryOf(refused.status()), Delivery::kNotSent);
}

TEST(CurlApiClient, ATimeoutIsOfUnknownDelivery) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.delay = absl::Seconds(20);
  server.Inject(fault);
  ApiRequest request = CreatePod("a");
  request.timeout = absl::Milliseconds(100);
  auto late = client.Call(std::move(request));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(DeliveryOf(late.status()), Delivery::kUnknown);
  // The client closed that connection; later requests get a new one.
  EXPECT_TRUE(client.Call(CreatePod("b"))->ok());
}

TEST(CurlApiClient, ALostConnectionIsRetriedForReads) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  server.Put("pods", {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}});
  Fault fault;
  fault.drop_request = true;
  server.Inject(fault);
  auto found = client.Call(Get("/api/v1/namespaces/ns/pods/a"));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->http_status, 200);
  EXPECT_EQ(server.Count("GET", "/pods/a"), 2);
}

TEST(CurlApiClient, HonoursRetryAfterForAnyMethod) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.http_status = 429;
  fault.retry_after_seconds = 1;
  server.Inject(fault);
  const absl::Time begin = SteadyNow();
  auto created = client.Call(CreatePod("a"));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(created->http_status, 201);
  EXPECT_GE(SteadyNow() - begin, absl::Seconds(1));
  EXPECT_EQ(server.Count("POST", "/pods"), 2);
}

TEST(CurlApiClient, AnswersWithoutRetryAfterOrWithRetryOffAreGivenToTheCaller) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.http_status = 503;
  server.Inject(fault);
  EXPECT_EQ(client.Call(CreatePod("a"))->http_status, 503);
  fault.http_status = 429;
  fault.retry_after_seconds = 7;
  server.Inject(fault);
  ApiRequest request = CreatePod("a");
  request.retry = false;
  auto answer = client.Call(std::move(request));
  EXPECT_EQ(answer->http_status, 429);
  EXPECT_EQ(answer->retry_after, absl::Seconds(7));
  EXPECT_EQ(ToStatus(*answer).message(), "Too many requests, please try again later. (HTTP 429)");
}

TEST(CurlApiClient, TheFenceIsAskedRightBeforeEverySending) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.http_status = 429;
  fault.retry_after_seconds = 1;
  server.Inject(fault);
  int asked = 0;
  ApiRequest request = CreatePod("a");
  request.before_send = [&asked] {
    return ++asked == 1 ? absl::OkStatus() : absl::FailedPreconditionError("not the leader");
  };
  auto fenced = client.Call(std::move(request));
  EXPECT_EQ(fenced.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(server.Count("POST", "/pods"), 1);
  // The first attempt was answered with 429, but the client draws no conclusion from that.
  EXPECT_EQ(DeliveryOf(fenced.status()), Delivery::kUnknown);
  ApiRequest never = CreatePod("b");
  never.before_send = [] { return absl::FailedPreconditionError("not the leader"); };
  EXPECT_EQ(DeliveryOf(client.Call(std::move(never)).status()), Delivery::kNotSent);
  EXPECT_EQ(server.Count("POST", "/pods"), 1);
}

// Many requests start together, and each may wait for the connection. A check before that wait does
// not hold for the moment at which the request is sent.
TEST(CurlApiClient, TheFenceIsAskedWhenTheConnectionIsThere) {
  auto server = std::make_unique<FakeApiServer>();
  CurlApiClient client(server->Config(), NoLimit());
  server.reset();
  int asked = 0;
  ApiRequest request = CreatePod("a");
  request.before_send = [&asked] {
    ++asked;
    return absl::OkStatus();
  };
  const absl::Status refused = client.Call(std::move(request)).status();
  EXPECT_EQ(DeliveryOf(refused), Delivery::kNotSent);
  EXPECT_EQ(asked, 0);
}

// A server whose kernel accepts a connection and a few kilobytes, and that reads later or never.
class LateServer {
 public:
  LateServer() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int few = 4096;
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    config_.server = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    config_.credentials = MakeStaticCredentials({});
  }
  ~LateServer() { close(fd_); }

  ClientConfig Config() const { return config_; }
  // Waits until a client has sent something.
  void AwaitRequest() {
    connection_ = accept(fd_, nullptr, nullptr);
    char byte;
    EXPECT_EQ(recv(connection_, &byte, 1, MSG_PEEK), 1);
  }
  // Reads what the client has sent and still sends, until the connection ends.
  size_t ReadAll() {
    std::vector<char> buffer(1 << 16);
    size_t bytes = 0;
    for (ssize_t got; (got = recv(connection_, buffer.data(), buffer.size(), 0)) > 0;) bytes += got;
    close(connection_);
    return bytes;
  }

 private:
  const int fd_;
  int connection_ = -1;
  ClientConfig config_;
};

// Larger than LateServer's buffer, smaller than the sender's.
constexpr size_t kBodyBytes = 200 << 10;

ApiRequest LargeWrite() {
  ApiRequest request = CreatePod("a");
  request.body.resize(kBodyBytes, ' ');
  return request;
}

// The request waits in this machine's send buffer while its time passes. The server's machine comes
// back: it must not get the request then.
TEST(CurlApiClient, AWriteWhoseTimeIsOverDoesNotReachTheServer) {
  for (bool lease : {false, true}) {
    LateServer server;
    CurlApiClient client(server.Config(), NoLimit());
    ApiRequest request = LargeWrite();
    if (lease) {
      request.ends_by = [end = SteadyNow() + absl::Milliseconds(300)] { return end; };
    } else {
      request.timeout = absl::Milliseconds(300);
    }
    absl::Notification ended;
    client.Start(std::move(request), [&ended](absl::StatusOr<ApiResponse> answer) {
      EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded) << answer.status();
      EXPECT_EQ(DeliveryOf(answer.status()), Delivery::kUnknown);
      ended.Notify();
    });
    server.AwaitRequest();
    ended.WaitForNotification();
    EXPECT_LT(server.ReadAll(), kBodyBytes) << "lease: " << lease;
  }
}

// The process ends because it lost its lease, or before it releases it.
TEST(CurlApiClient, AWriteOfAnEndedClientDoesNotReachTheServer) {
  LateServer server;
  CurlApiClient client(server.Config(), NoLimit());
  absl::Notification ended;
  client.Start(LargeWrite(), [&ended](absl::StatusOr<ApiResponse> answer) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled) << answer.status();
    EXPECT_EQ(DeliveryOf(answer.status()), Delivery::kUnknown);
    ended.Notify();
  });
  server.AwaitRequest();
  client.Stop();
  ended.WaitForNotification();
  EXPECT_LT(server.ReadAll(), kBodyBytes);
  const absl::Status later = client.Call(CreatePod("b")).status();
  EXPECT_EQ(later.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(DeliveryOf(later), Delivery::kNotSent);
}

// As after SIGKILL: nothing of this process runs any more, the kernel closes its connections.
TEST(CurlApiClient, AWriteOfADeadProcessDoesNotReachTheServer) {
  LateServer server;
  const pid_t child = fork();
  if (child == 0) {
    CurlApiClient client(server.Config(), NoLimit());
    (void)client.Call(LargeWrite());
    _exit(1);  // it is never answered
  }
  server.AwaitRequest();
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_LT(server.ReadAll(), kBodyBytes);
}

TEST(CurlApiClient, ARenewedLeasePutsTheEndOff) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault slow;
  slow.method = "POST";
  slow.delay = absl::Milliseconds(500);
  server.Inject(slow);
  int asked = 0;
  ApiRequest request = CreatePod("a");
  request.ends_by = [&asked, began = SteadyNow()] {
    return began + (++asked < 3 ? absl::Milliseconds(100) * asked : absl::Hours(1));
  };
  auto created = client.Call(std::move(request));
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(created->http_status, 201);
  EXPECT_EQ(asked, 3);
}

TEST(CurlApiClient, ManyAtOnceAllEndOnceAndFewAreInFlight) {
  FakeApiServer server;
  CurlApiClientOptions options = NoLimit();
  options.max_in_flight = 4;
  CurlApiClient client(server.Config(), options);
  constexpr int kRequests = 500;
  absl::BlockingCounter left(kRequests);
  std::atomic<int> created{0};
  for (int i = 0; i < kRequests; ++i) {
    client.Start(CreatePod(absl::StrCat("p", i)), [&](absl::StatusOr<ApiResponse> answer) {
      if (answer.ok() && answer->http_status == 201) ++created;
      left.DecrementCount();
    });
  }
  left.Wait();
  EXPECT_EQ(created, kRequests);
  EXPECT_EQ(server.All("pods").size(), static_cast<size_t>(kRequests));
}

TEST(CurlApiClient, KeepsToTheRate) {
  FakeApiServer server;
  CurlApiClientOptions options;
  options.qps = 20;
  options.burst = 2;
  CurlApiClient client(server.Config(), options);
  const absl::Time begin = SteadyNow();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client.Call(CreatePod(absl::StrCat("p", i)))->ok());
  // Two at once, then six at intervals of 50 ms.
  EXPECT_GE(SteadyNow() - begin, absl::Milliseconds(290));
  ApiRequest urgent = CreatePod("urgent");
  urgent.rate_limited = false;
  EXPECT_TRUE(client.Call(std::move(urgent))->ok());
}

TEST(CurlApiClient, TheDestructorEndsEverything) {
  FakeApiServer server;
  Fault fault;
  fault.delay = absl::Seconds(20);
  fault.times = 100;
  server.Inject(fault);
  std::atomic<int> ended{0};
  std::atomic<int> not_sent{0};
  {
    CurlApiClientOptions options = NoLimit();
    options.max_in_flight = 2;
    CurlApiClient client(server.Config(), options);
    for (int i = 0; i < 5; ++i) {
      client.Start(CreatePod(absl::StrCat("p", i)), [&](absl::StatusOr<ApiResponse> answer) {
        EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled);
        if (DeliveryOf(answer.status()) == Delivery::kNotSent) ++not_sent;
        ++ended;
      });
    }
    ASSERT_TRUE(server.AwaitCount("POST", "/pods", 2));
  }
  EXPECT_EQ(ended, 5);
  EXPECT_EQ(not_sent, 3);
}

TEST(CurlApiClient, RefusesAnAnswerThatIsTooLarge) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  server.Put("pods", {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}});
  ApiRequest request = Get("/api/v1/pods");
  request.max_response_bytes = 10;
  EXPECT_EQ(client.Call(std::move(request)).status().code(), absl::StatusCode::kResourceExhausted);
}

// Returns newer credentials after a 401.
class TwoTokens : public CredentialSource {
 public:
  absl::StatusOr<CredentialsPtr> Get(absl::Time) override {
    auto credentials = std::make_shared<Credentials>();
    credentials->bearer_token = rejected_ ? "new" : "old";
    if (current_ == nullptr || current_->bearer_token != credentials->bearer_token) {
      current_ = credentials;
    }
    return current_;
  }
  void Rejected(const CredentialsPtr&, absl::Time) override { rejected_ = true; }

 private:
  std::atomic<bool> rejected_{false};
  CredentialsPtr current_;
};

TEST(CurlApiClient, RenewsCredentialsAfter401AndTriesOnceMore) {
  FakeApiServer server;
  ClientConfig config = server.Config();
  config.credentials = std::make_shared<TwoTokens>();
  CurlApiClient client(config, NoLimit());
  Fault fault;
  fault.http_status = 401;
  server.Inject(fault);
  EXPECT_EQ(client.Call(CreatePod("a"))->http_status, 201);
  const auto log = server.Requests();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].headers.at("authorization"), "Bearer old");
  EXPECT_EQ(log[1].headers.at("authorization"), "Bearer new");
  server.Inject(fault);
  EXPECT_EQ(client.Call(CreatePod("b"))->http_status, 401);
}

// Records the calls of a stream.
class Recorder : public StreamSink {
 public:
  absl::Status OnHeaders(int http_status, absl::string_view content_type, absl::Duration) override {
    status = http_status;
    type = std::string(content_type);
    opened.Notify();
    return absl::OkStatus();
  }
  absl::Status OnData(absl::string_view piece) override {
    data.append(piece.data(), piece.size());
    return answer;
  }
  absl::Time SilenceDeadline() override { return silence; }

  int status = 0;
  std::string type;
  std::string data;
  absl::Status answer;
  absl::Time silence = absl::InfiniteFuture();
  absl::Notification opened;
};

TEST(CurlApiClientStream, DeliversUntilTheServerEndsIt) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  server.Put("pods", {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}});
  Recorder sink;
  absl::Status ended = client.Stream(
      Get("/api/v1/pods?watch=true&resourceVersion=1&timeoutSeconds=1"), sink, CancelToken());
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(sink.status, 200);
  EXPECT_NE(sink.data.find("\"ADDED\""), std::string::npos);
  EXPECT_EQ(server.Requests()[0].headers.count("accept-encoding"), 0u);
}

TEST(CurlApiClientStream, EndsWithTheSinksStatusOnSilenceAndOnCancel) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  server.Put("pods", {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}});
  const std::string path = "/api/v1/pods?watch=true&resourceVersion=";
  Recorder refusing;
  refusing.answer = absl::DataLossError("no more");
  EXPECT_EQ(client.Stream(Get(path + "1"), refusing, CancelToken()).code(),
            absl::StatusCode::kDataLoss);
  Recorder silent;
  silent.silence = SteadyNow() + absl::Milliseconds(200);
  EXPECT_EQ(client.Stream(Get(path + "101"), silent, CancelToken()).code(),
            absl::StatusCode::kDeadlineExceeded);
  Recorder cancelled;
  CancelToken cancel;
  std::thread other([&] {
    cancelled.opened.WaitForNotification();
    cancel.Cancel();
  });
  EXPECT_EQ(client.Stream(Get(path + "101"), cancelled, cancel).code(),
            absl::StatusCode::kCancelled);
  other.join();
}

// All clients and watches of a process report to one place.
TEST(CurlApiClientStream, ReportsWhetherTheServerAnswers) {
  FakeApiServer server;
  ClientConfig gone;
  {
    FakeApiServer ended;
    gone = ended.Config();
  }
  std::vector<std::string> lines;
  Reachability reachability("https://api", [&](const std::string& line) { lines.push_back(line); });
  CurlApiClientOptions options = NoLimit();
  options.reachability = &reachability;
  CurlApiClient client(gone, options);
  CurlApiClient answered(server.Config(), options);
  ASSERT_FALSE(client.Call(CreatePod("a")).ok());
  EXPECT_TRUE(reachability.Check(SteadyNow()).ok());
  Recorder sink;
  ASSERT_FALSE(client.Stream(Get("/api/v1/pods?watch=true"), sink, CancelToken()).ok());
  EXPECT_THAT(std::string(reachability.Check(SteadyNow()).message()),
              ::testing::HasSubstr("https://api does not answer: Failed to connect"));
  // An error is an answer, too.
  ASSERT_TRUE(answered.Call(Get("/api/v1/namespaces/ns/pods/none")).ok());
  EXPECT_TRUE(reachability.Check(SteadyNow()).ok());
  EXPECT_EQ(lines.size(), 2u);
}

TEST(CurlApiClientStream, ErrorAnswersAndLostConnections) {
  FakeApiServer server;
  CurlApiClient client(server.Config(), NoLimit());
  Fault fault;
  fault.http_status = 429;
  server.Inject(fault);
  Recorder limited;
  EXPECT_TRUE(client.Stream(Get("/api/v1/pods?watch=true"), limited, CancelToken()).ok());
  EXPECT_EQ(limited.status, 429);
  EXPECT_EQ(limited.data, "Too many requests, please try again later.");
  Recorder cut;
  std::thread other([&] {
    cut.opened.WaitForNotification();
    server.CloseConnections();
  });
  EXPECT_EQ(client.Stream(Get("/api/v1/pods?watch=true"), cut, CancelToken()).code(),
            absl::StatusCode::kUnavailable);
  other.join();
}

}  // namespace
}  // namespace outboard::kube
