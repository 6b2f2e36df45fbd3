#include "shim/extender/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "shim/clock.h"
#include "shim/extender/testing/test_certificates.h"
#include "shim/http/testing/flood.h"
#include "shim/scheduler/testing/no_cluster_actions.h"

namespace outboard::extender {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kQuestion[] =
    R"({"Pod":{"metadata":{"name":"p","namespace":"ns","uid":"u"}},"NodeNames":["a"]})";

ServerOptions Loopback() {
  ServerOptions options;
  options.host = "127.0.0.1";
  options.serves_bind = true;
  return options;
}

// A server that answers with the verb and the length of the body.
class ExtenderServerTest : public ::testing::Test {
 protected:
  void StartServer(ServerOptions options) {
    options.answer = [this](Verb verb, std::string body) {
      ++answered_;
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&may_answer_));
      return HttpAnswer{200, absl::StrCat("\"", VerbName(verb), " ", body.size(), "\"")};
    };
    absl::StatusOr<std::unique_ptr<Server>> started = Server::Start(std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  void LetAnswer(bool may) {
    absl::MutexLock lock(&mutex_);
    may_answer_ = may;
  }
  std::unique_ptr<httplib::Client> Client() {
    auto client = std::make_unique<httplib::Client>("127.0.0.1", server_->port());
    client->set_keep_alive(true);
    return client;
  }

  absl::Mutex mutex_;
  bool may_answer_ = true;
  std::atomic<int> answered_{0};
  std::unique_ptr<Server> server_;
};

TEST_F(ExtenderServerTest, ServesVerbsOverOneConnection) {
  StartServer(Loopback());
  auto client = Client();
  for (const char* verb : {"filter", "prioritize", "preempt", "bind"}) {
    auto answer = client->Post(absl::StrCat("/", verb), "12345", "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, absl::StrCat("\"", verb, " 5\""));
    EXPECT_EQ(answer->get_header_value("Content-Type"), "application/json");
  }
  // The end of the connection is announced: a client must not find out with its next request.
  const auto refused = [&](const httplib::Result& answer, int status) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, status);
    EXPECT_EQ(answer->get_header_value("Connection"), "close");
    EXPECT_FALSE(answer->has_header("Keep-Alive"));
    const httplib::Result next = client->Post("/filter", "1", "application/json");
    ASSERT_TRUE(next);
    EXPECT_EQ(next->status, 200);
    EXPECT_FALSE(next->has_header("Connection"));
  };
  refused(client->Post("/evict", "1", "application/json"), 404);
  refused(client->Get("/filter"), 405);
  refused(client->Put("/filter", "1", "application/json"), 405);
}

TEST_F(ExtenderServerTest, WithoutAProfileOnlyAdmitExists) {
  ServerOptions options = Loopback();
  options.serves_profile = false;
  options.serves_admit = true;
  StartServer(std::move(options));
  for (const char* path : {"/filter", "/prioritize", "/preempt", "/bind"}) {
    const httplib::Result refused = Client()->Post(path, "1", "application/json");
    ASSERT_TRUE(refused) << path;
    EXPECT_EQ(refused->status, 404) << path;
    EXPECT_EQ(refused->body, "only /admit is served: extender.profile is not set\n") << path;
  }
  EXPECT_EQ(answered_, 0);
  const httplib::Result answer = Client()->Post("/admit", "12345", "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "\"admit 5\"");
}

TEST_F(ExtenderServerTest, BodiesAreBounded) {
  ServerOptions options = Loopback();
  options.max_body_bytes = 1000;
  StartServer(std::move(options));
  auto answer = Client()->Post("/filter", std::string(1000, ' '), "application/json");
  EXPECT_EQ(answer->status, 200);
  answer = Client()->Post("/filter", std::string(1001, ' '), "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answer->body, "the body is longer than 1000 bytes\n");
  // A body of unknown length, and a body that grows when decompressed.
  int pieces = 0;
  answer = Client()->Post(
      "/filter",
      [&](size_t, httplib::DataSink& sink) {
        const std::string piece(100, ' ');
        if (++pieces > 100) {
          sink.done();
        } else {
          sink.write(piece.data(), piece.size());
        }
        return true;
      },
      "application/json");
  // Or the connection was closed during the upload.
  EXPECT_TRUE(!answer || answer->status == 411);
  auto packing = Client();
  packing->set_compress(true);
  answer = packing->Post("/filter", std::string(500000, ' '), "application/json");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answered_, 1);
}

// A refused body is not taken for further requests: the connection ends.
TEST_F(ExtenderServerTest, WhatHasNoEndIsNotRead) {
  ServerOptions options = Loopback();
  options.max_body_bytes = 1000;
  StartServer(std::move(options));
  const size_t before = http::testing::ResidentBytes();
  const std::string chunk = absl::StrCat("100000\r\n", std::string(1 << 20, 'x'), "\r\n");
  for (const char* path : {"/filter", "/unknown"}) {
    EXPECT_LT(
        http::testing::Flood(
            server_->port(),
            absl::StrCat("POST ", path, " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), chunk),
        http::testing::kKernelBuffers)
        << path;
  }
  EXPECT_LT(http::testing::Flood(server_->port(),
                                 "POST /filter HTTP/1.1\r\nX: ", std::string(1 << 20, 'x')),
            http::testing::kKernelBuffers);
  EXPECT_LT(http::testing::ResidentBytes(), before + http::testing::kFloodedGrowth);
  EXPECT_EQ(answered_, 0);
  EXPECT_EQ(Client()->Post("/filter", "1", "application/json")->status, 200);
}

// Room for nodes is only for bodies that carry them.
TEST_F(ExtenderServerTest, HeadersAndBodiesWithoutNodesAreSmall) {
  ServerOptions options = Loopback();
  options.serves_bind = options.serves_admit = true;
  StartServer(std::move(options));
  const size_t before = http::testing::ResidentBytes();
  for (const char* path : {"/filter", "/bind", "/unknown"}) {
    http::testing::Flood(server_->port(), absl::StrCat("POST ", path, " HTTP/1.1\r\nX: "),
                         std::string(1 << 20, 'x'));
  }
  const std::string chunk = absl::StrCat("100000\r\n", std::string(1 << 20, 'x'), "\r\n");
  for (const char* path : {"/bind", "/admit", "/unknown"}) {
    http::testing::Flood(
        server_->port(),
        absl::StrCat("POST ", path, " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), chunk);
  }
  EXPECT_LT(http::testing::ResidentBytes(), before + http::testing::kFloodedGrowth);
  EXPECT_EQ(answered_, 0);
  EXPECT_EQ(Client()->Post("/bind", std::string(100000, ' '), "application/json")->status, 413);
  EXPECT_EQ(Client()->Post("/admit", std::string(100000, ' '), "application/json")->status, 200);
}

TEST_F(ExtenderServerTest, RequestsAreBounded) {
  ServerOptions options = Loopback();
  options.max_requests = 1;
  options.max_wait = absl::Milliseconds(50);
  StartServer(std::move(options));
  LetAnswer(false);
  std::thread first([&] {
    auto answer = Client()->Post("/filter", "1", "application/json");
    EXPECT_EQ(answer->status, 200);
  });
  while (answered_ == 0) std::this_thread::yield();
  auto client = Client();
  auto refused = client->Post("/filter", "2", "application/json");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  LetAnswer(true);
  first.join();
  // The connection is still usable.
  EXPECT_EQ(client->Post("/filter", "3", "application/json")->body, "\"filter 1\"");
}

// A bind may wait for its gang: it holds a connection, and others have their turns meanwhile.
TEST_F(ExtenderServerTest, BindsThatWaitTakeNoTurns) {
  ServerOptions options = Loopback();
  options.max_requests = 1;
  options.max_connections = 1;
  options.max_binds = 3;
  StartServer(std::move(options));
  LetAnswer(false);
  std::vector<std::thread> binds;
  for (int i = 0; i < 3; ++i) {
    binds.emplace_back([&] {
      auto answer = Client()->Post("/bind", "1", "application/json");
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->body, "\"bind 1\"");
    });
  }
  while (answered_ < 3) std::this_thread::yield();
  std::thread filter([&] {
    auto answer = Client()->Post("/filter", "12", "application/json");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "\"filter 2\"");
  });
  while (answered_ < 4) std::this_thread::yield();
  LetAnswer(true);
  filter.join();
  for (std::thread& bind : binds) bind.join();
}

TEST_F(ExtenderServerTest, BindRequiresAKnownClient) {
  ServerOptions options = Loopback();
  options.serves_bind = false;
  StartServer(std::move(options));
  EXPECT_EQ(Client()->Post("/bind", "{}", "application/json")->status, 403);
  EXPECT_EQ(Client()->Post("/filter", "{}", "application/json")->status, 200);
}

TEST_F(ExtenderServerTest, StopsWithConnectionsThatAreIdle) {
  StartServer(Loopback());
  auto client = Client();
  ASSERT_TRUE(client->Post("/filter", "1", "application/json"));
  const absl::Time began = SteadyNow();
  server_->Stop();
  EXPECT_LT(SteadyNow() - began, absl::Seconds(5));
}

TEST_F(ExtenderServerTest, AddressInUse) {
  StartServer(Loopback());
  ServerOptions second = Loopback();
  second.port = server_->port();
  EXPECT_TRUE(absl::IsUnavailable(Server::Start(std::move(second)).status()));
}

class TlsServerTest : public ExtenderServerTest {
 protected:
  TlsServerTest() { authority_.Write(Path("ca.crt"), ""); }
  static std::string Path(const std::string& name) {
    return absl::StrCat(::testing::TempDir(), "/extender_", getpid(), "_", name);
  }
  ServerOptions Tls(bool clients) {
    ServerOptions options = Loopback();
    http::ServingCertificateOptions files;
    files.cert_file = Path("tls.crt");
    files.key_file = Path("tls.key");
    if (clients) files.client_ca_file = Path("ca.crt");
    files.requires_client_certificate = true;
    auto certificate = http::ServingCertificate::Load(std::move(files));
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    if (certificate.ok()) options.certificate = *std::move(certificate);
    return options;
  }
  // The serial of the server's certificate; 0: the server rejects the client.
  long Shown(const TestCertificate* client_certificate = nullptr) {
    std::unique_ptr<httplib::SSLClient> client;
    if (client_certificate == nullptr) {
      client = std::make_unique<httplib::SSLClient>("127.0.0.1", server_->port());
    } else {
      client_certificate->Write(Path("client.crt"), Path("client.key"));
      client = std::make_unique<httplib::SSLClient>("127.0.0.1", server_->port(),
                                                    Path("client.crt"), Path("client.key"));
    }
    client->set_ca_cert_path(Path("ca.crt").c_str());
    client->enable_server_certificate_verification(true);
    long serial = 0;
    SSL_CTX_set_ex_data(client->ssl_context(), 0, &serial);
    SSL_CTX_set_verify(client->ssl_context(), SSL_VERIFY_PEER, [](int ok, X509_STORE_CTX* store) {
      X509* shown = X509_STORE_CTX_get_current_cert(store);
      auto* ssl = static_cast<SSL*>(
          X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
      auto* out = static_cast<long*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), 0));
      if (X509_STORE_CTX_get_error_depth(store) == 0)
        *out = ASN1_INTEGER_get(X509_get_serialNumber(shown));
      return ok;
    });
    auto answer = client->Post("/filter", "1", "application/json");
    return answer && answer->status == 200 ? serial : 0;
  }

  const TestCertificate authority_{1};
};

TEST_F(TlsServerTest, ShowsTheCertificateThatTheFilesHold) {
  TestCertificate(10, &authority_).Write(Path("tls.crt"), Path("tls.key"));
  StartServer(Tls(/*clients=*/false));
  EXPECT_EQ(Shown(), 10);
  // A half-written pair is invalid and changes nothing.
  const TestCertificate next(11, &authority_);
  next.Write(Path("tls.crt"), "");
  const absl::Time changed = SteadyNow();
  while (SteadyNow() < changed + absl::Milliseconds(1100)) ASSERT_EQ(Shown(), 10);
  next.Write("", Path("tls.key"));
  long shown = 10;
  for (const absl::Time end = SteadyNow() + absl::Seconds(10); shown == 10 && SteadyNow() < end;)
    shown = Shown();
  EXPECT_EQ(shown, 11);
}

TEST_F(TlsServerTest, ClientsWithoutACertificateOfTheAuthorityAreRefused) {
  TestCertificate(10, &authority_).Write(Path("tls.crt"), Path("tls.key"));
  StartServer(Tls(/*clients=*/true));
  EXPECT_EQ(Shown(), 0);
  const TestCertificate stranger(20);
  EXPECT_EQ(Shown(&stranger), 0);
  const TestCertificate friendly(21, &authority_);
  EXPECT_EQ(Shown(&friendly), 10);
  EXPECT_EQ(answered_, 1);
}

// Replaces the scheduling thread: the test runs the posted closures in order.
class EndpointTest : public ::testing::Test {
 protected:
  EndpointTest() {
    scheduler_.SetProfileNames({"extender"});
    EndpointOptions options;
    options.server = Loopback();
    options.server.serves_admit = true;
    options.deadline = absl::Seconds(5);
    options.bind_deadline = absl::Minutes(10);
    options.post = [this](std::function<void(absl::Time)> work) {
      absl::MutexLock lock(&mutex_);
      work_.push_back(std::move(work));
    };
    options.is_ready = [this] { return ready_; };
    options.may_bind = [this] { return may_bind_; };
    options.observe = [this](Verb verb, absl::string_view result, absl::Duration) {
      absl::MutexLock lock(&mutex_);
      observed_.push_back(absl::StrCat(VerbName(verb), " ", result));
    };
    endpoint_ = *Endpoint::Start(std::move(options), &handler_);
  }
  // Posts a request and, if needed, runs one closure.
  httplib::Response Post(const std::string& path, const std::string& body, bool needs_work) {
    httplib::Response got;
    std::thread client([&] {
      httplib::Client http("127.0.0.1", endpoint_->port());
      auto answer = http.Post(path, body, "application/json");
      if (answer) got = *answer;
    });
    if (needs_work) {
      std::function<void(absl::Time)> work;
      {
        absl::MutexLock lock(&mutex_);
        const auto any = [this] { return !work_.empty(); };
        mutex_.Await(absl::Condition(&any));
        work = std::move(work_.front());
        work_.pop_front();
      }
      work(SteadyNow());
    }
    client.join();
    return got;
  }

  absl::Mutex mutex_;
  std::deque<std::function<void(absl::Time)>> work_;
  std::vector<std::string> observed_;
  absl::Status ready_;
  absl::Status may_bind_;
  scheduler::NoClusterActions effects_;
  scheduler::Observer observer_;
  scheduler::Scheduler scheduler_{scheduler::SchedulerOptions(),
                                  queue::QueueOptions(),
                                  &effects_,
                                  &observer_,
                                  nullptr,
                                  SteadyNow()};
  scheduler::ExternallyScheduledPods pods_{scheduler_.shared_parts(), &effects_};
  ExtenderHandler handler_{&pods_, "extender"};
  std::unique_ptr<Endpoint> endpoint_;
};

TEST_F(EndpointTest, ErrorsHaveUpstreamsForm) {
  ready_ = absl::UnavailableError("informers not synced: pods");
  httplib::Response got = Post("/filter", kQuestion, true);
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, R"({"Error":"informers not synced: pods"})");
  // HostPriorityList has no error field.
  got = Post("/prioritize", kQuestion, true);
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "informers not synced: pods\n");
  EXPECT_EQ(Post("/preempt", kQuestion, true).status, 503);
  ready_ = absl::OkStatus();
  may_bind_ = absl::FailedPreconditionError("the lease is held by another replica");
  got = Post("/bind", R"({"PodUID":"u","PodName":"p","PodNamespace":"ns","Node":"a"})", true);
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, R"({"Error":"the lease is held by another replica"})");
  EXPECT_THAT(observed_,
              ElementsAre("filter failed", "prioritize failed", "preempt failed", "bind failed"));
}

// An answer to a review has no error field, and only the leader knows the pending binds: any other
// status makes the API server follow its failurePolicy.
TEST_F(EndpointTest, AReplicaThatDoesNotLeadAdmitsNothing) {
  may_bind_ = absl::FailedPreconditionError(NotLeading("outboard", "shim-b_1"));
  std::ifstream file("shim/extender/testdata/bind_review.json");
  const std::string review((std::istreambuf_iterator<char>(file)), {});
  const httplib::Response got = Post("/admit", review, true);
  EXPECT_EQ(got.status, 503);
  EXPECT_EQ(got.body, "this replica does not hold the lease outboard; ask shim-b_1, which does\n");
  EXPECT_EQ(NotLeading("l", ""),
            "this replica does not hold the lease l; no other replica is known to hold it");
}

// A process that stops does not wait for a gang.
TEST_F(EndpointTest, TheEndOfTheEndpointEndsOpenRequests) {
  httplib::Response got;
  std::thread client([&] {
    httplib::Client http("127.0.0.1", endpoint_->port());
    auto answer =
        http.Post("/bind", R"({"PodUID":"u","PodName":"p","PodNamespace":"ns","Node":"a"})",
                  "application/json");
    if (answer) got = *answer;
  });
  {
    absl::MutexLock lock(&mutex_);
    const auto any = [this] { return !work_.empty(); };
    mutex_.Await(absl::Condition(&any));
  }
  endpoint_ = nullptr;
  client.join();
  EXPECT_EQ(got.body, R"({"Error":"the extender is stopping"})");
}

TEST_F(EndpointTest, MalformedBodiesAreSaidToBe) {
  for (const char* path : {"/filter", "/prioritize", "/preempt", "/bind"}) {
    httplib::Response got = Post(path, "{\"Pod\":", false);
    EXPECT_EQ(got.status, 400) << path;
    EXPECT_THAT(got.body, HasSubstr("the request is malformed: byte 7: ")) << path;
  }
  EXPECT_THAT(observed_, ElementsAre("filter malformed", "prioritize malformed",
                                     "preempt malformed", "bind malformed"));
}

}  // namespace
}  // namespace outboard::extender
