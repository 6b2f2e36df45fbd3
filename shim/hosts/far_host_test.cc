// Hosts on other machines: slow links, and machines that vanish without closing a connection.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_connector.h"
#include "shim/http/testing/authority.h"

namespace outboard::hosts {
namespace {

using testing::FakeHost;
using v1beta1::GetHostInfoResponse;
using v1beta1::ProbeRequest;
using v1beta1::ProbeResponse;

sockaddr_in Loopback(int port) {
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return name;
}

// A link to a host: passes connections on.
class Link {
 public:
  enum class State {
    kUp,
    kRefused,  // connections end at once
    kSilent,   // connections stay open, and nothing comes
  };

  explicit Link(int host_port) : host_port_(host_port) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name = Loopback(0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(listen(fd_, 64), 0);
    socklen_t size = sizeof(name);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &size), 0);
    port_ = ntohs(name.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Link() {
    shutdown(fd_, SHUT_RDWR);
    acceptor_.join();
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : fds_) close(fd);
    close(fd_);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void Set(State state) { state_ = state; }
  // In each direction.
  void SetLatency(absl::Duration latency) { latency_micros_ = absl::ToInt64Microseconds(latency); }

 private:
  void Accept() {
    for (int fd = accept(fd_, nullptr, nullptr); fd >= 0; fd = accept(fd_, nullptr, nullptr)) {
      fds_.push_back(fd);
      if (state_ == State::kRefused) shutdown(fd, SHUT_RDWR);
      if (state_ != State::kUp) continue;
      const int host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      fds_.push_back(host);
      const sockaddr_in name = Loopback(host_port_);
      if (connect(host, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) continue;
      threads_.emplace_back([this, fd, host] { Pass(fd, host); });
      threads_.emplace_back([this, fd, host] { Pass(host, fd); });
    }
  }
  void Pass(int from, int to) {
    char bytes[16384];
    for (ssize_t n = read(from, bytes, sizeof(bytes)); n > 0;
         n = read(from, bytes, sizeof(bytes))) {
      absl::SleepFor(absl::Microseconds(latency_micros_.load()));  // the fault itself
      if (state_ == State::kUp) send(to, bytes, static_cast<size_t>(n), MSG_NOSIGNAL);
    }
    if (state_ == State::kUp) shutdown(to, SHUT_RDWR);
  }

  const int host_port_;
  int fd_ = -1, port_ = 0;
  std::atomic<State> state_{State::kUp};
  std::atomic<int64_t> latency_micros_{0};
  std::vector<int> fds_;  // of the acceptor's thread until it has ended
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

class FarHostTest : public ::testing::Test {
 protected:
  FarHostTest() : directory_(absl::StrCat(::testing::TempDir(), "outboard-far-", getpid())) {
    std::filesystem::create_directory(directory_);
    http::testing::Authority authority("far");
    const auto shim = authority.Issue("shim", "clientAuth");
    const auto host = authority.Issue("host", "serverAuth");
    tls_.ca_file = Write("ca.crt", authority.pem());
    tls_.cert_file = Write("shim.crt", shim.certificate);
    tls_.key_file = Write("shim.key", shim.key);
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = authority.pem();
    options.pem_key_cert_pairs.push_back({host.key, host.certificate});
    host_ = FakeHost::Start("127.0.0.1:0", "far-1", grpc::SslServerCredentials(options));
    host_->Answer<ProbeRequest, ProbeResponse>([](const ProbeRequest&, ProbeResponse* response) {
      response->set_instance("far-1");
      response->set_state(ProbeResponse::STATE_READY);
      return grpc::Status::OK;
    });
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(host_->address().substr(host_->address().rfind(':') + 1), &port));
    link_ = std::make_unique<Link>(port);
  }
  ~FarHostTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(directory_, "/", name);
    std::ofstream(path) << text;
    return path;
  }
  Endpoint endpoint() const { return {"far", link_->address(), tls_, 0}; }

  const std::string directory_;
  config::HostTls tls_;
  std::unique_ptr<FakeHost> host_;
  std::unique_ptr<Link> link_;
};

// TCP's and TLS' handshakes take several times the latency.
TEST_F(FarHostTest, IsReachedOverASlowLink) {
  link_->SetLatency(absl::Milliseconds(50));
  auto channel = Dial(endpoint(), {});
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto host = Handshake(*channel, absl::Seconds(30));
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->identity.instance(), "far-1");
}

// An instance that is found by its pod is called from then on, and again where another pod has the
// address.
TEST_F(FarHostTest, IsFoundByItsPod) {
  absl::Mutex mu;
  std::vector<std::string> pods;
  HostConnector::Callbacks callbacks;
  callbacks.on_handshake = [&](const Endpoint& endpoint, const HostConnection& connection) {
    absl::MutexLock lock(&mu);
    pods.push_back(absl::StrCat(endpoint.pod, " ", connection.identity.instance()));
  };
  callbacks.on_ready = [](const std::string&, const std::string&, const v1beta1::ProbeResponse&) {};
  callbacks.on_draining = callbacks.on_gone = [](const std::string&, const std::string&) {};
  HostConnector connector(config::ShimConfig(), callbacks);
  const auto await = [&](const std::vector<std::string>& wanted) {
    absl::MutexLock lock(&mu);
    const auto as_wanted = [&] { return pods == wanted; };
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&as_wanted), absl::Minutes(1)))
        << ::testing::PrintToString(pods);
  };
  Endpoint first = endpoint();
  first.pod = "ns/a";
  first.pod_uid = "1";
  connector.SetPods({first});
  await({"ns/a far-1"});
  connector.SetPods({first});
  Endpoint second = first;
  second.pod = "ns/b";
  second.pod_uid = "2";
  connector.SetPods({second});
  await({"ns/a far-1", "ns/b far-1"});
}

// Its connections do not end, or those to it are refused by another machine on the way.
TEST_F(FarHostTest, ThatVanishesIsReportedUntilItAnswers) {
  config::ShimConfig config;
  config::HostSpec spec;
  spec.name = "far";
  spec.address = link_->address();
  spec.tls = tls_;
  config.hosts.push_back(spec);
  absl::Mutex mu;
  absl::Duration silence;
  int answers = 0;
  HostConnector::Callbacks callbacks;
  callbacks.on_handshake = [](const Endpoint&, const HostConnection&) {};
  callbacks.on_ready = [&](const std::string&, const std::string&, const v1beta1::ProbeResponse&) {
    absl::MutexLock lock(&mu);
    ++answers;
    silence = absl::ZeroDuration();
  };
  callbacks.on_draining = callbacks.on_gone = [](const std::string&, const std::string&) {};
  callbacks.on_silent = [&](const std::string&, const std::string&, absl::Duration since) {
    absl::MutexLock lock(&mu);
    silence = since;
  };
  HostConnector connector(config, callbacks);
  absl::MutexLock lock(&mu);
  for (const Link::State fault : {Link::State::kRefused, Link::State::kSilent}) {
    SCOPED_TRACE(static_cast<int>(fault));
    link_->Set(Link::State::kUp);
    answers = 0;
    const auto answered = [&] { return answers > 0; };
    ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&answered), absl::Minutes(1)));
    link_->Set(fault);
    const auto is_silent = [&] { return silence >= absl::Seconds(2); };
    ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&is_silent), absl::Minutes(1)));
  }
}

}  // namespace
}  // namespace outboard::hosts
