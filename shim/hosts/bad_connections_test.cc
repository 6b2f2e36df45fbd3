// Connections whose peer does not speak HTTP/2, or speaks it wrongly, or slowly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "proto/testing/fake_host.h"
#include "proto/testing/proxy_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_connector.h"
#include "shim/hosts/host_loop.h"

namespace outboard::hosts {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using handshake::v1::HandshakeResponse;
using testing::FakeHost;

constexpr absl::Duration kDeadline = absl::Milliseconds(100);
// Without a deadline a call would take for ever; a busy machine may be late.
constexpr absl::Duration kNotLate = absl::Seconds(30);

std::string PathFor(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "outboard-bad-", getpid(), "-", name, ".sock");
}

sockaddr_un NameOf(const std::string& path) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  return name;
}

// Listens on a Unix socket and gives each connection to `serve`, on its own thread, which ends when
// the connection is shut down.
class Listener {
 public:
  Listener(const std::string& path, std::function<void(int fd)> serve)
      : path_(path), serve_(std::move(serve)) {
    const sockaddr_un name = NameOf(path);
    fd_ = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0) << path;
    EXPECT_EQ(listen(fd_, 64), 0);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~Listener() {
    shutdown(fd_, SHUT_RDWR);
    acceptor_.join();
    for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : fds_) close(fd);
    close(fd_);
    unlink(path_.c_str());
  }
  std::string address() const { return absl::StrCat("unix:", path_); }

 private:
  void Accept() {
    for (int fd = accept(fd_, nullptr, nullptr); fd >= 0; fd = accept(fd_, nullptr, nullptr)) {
      fds_.push_back(fd);
      threads_.emplace_back([this, fd] { serve_(fd); });
    }
  }
  const std::string path_;
  const std::function<void(int)> serve_;
  int fd_ = -1;
  std::vector<int> fds_;  // of the acceptor's thread until it has ended
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// What happens to the host's bytes on their way.
enum class Way { kClean, kGarbled, kSlow };

// Passes connections on to a host.
void Pump(const std::string& upstream_path, const std::atomic<Way>* way, uint64_t seed,
          int client) {
  const sockaddr_un name = NameOf(upstream_path);
  const int host = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(host, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
    std::thread there([&] {
      char bytes[4096];
      for (ssize_t n = read(client, bytes, sizeof(bytes)); n > 0;
           n = read(client, bytes, sizeof(bytes)))
        send(host, bytes, static_cast<size_t>(n), MSG_NOSIGNAL);
      shutdown(host, SHUT_RDWR);
    });
    std::mt19937_64 random(seed);
    char bytes[4096];
    for (ssize_t n = read(host, bytes, sizeof(bytes)); n > 0;
         n = read(host, bytes, sizeof(bytes))) {
      const auto size = static_cast<size_t>(n);
      if (*way == Way::kGarbled) {
        for (uint64_t k = random() % 3; k > 0; --k)
          bytes[random() % size] = static_cast<char>(random());
      }
      if (*way != Way::kSlow) {
        send(client, bytes, size, MSG_NOSIGNAL);
        continue;
      }
      for (size_t i = 0; i < size && *way == Way::kSlow; ++i) {
        send(client, bytes + i, 1, MSG_NOSIGNAL);
        absl::SleepFor(absl::Milliseconds(20));
      }
    }
    shutdown(client, SHUT_RDWR);
    there.join();
  }
  close(host);
}

class BadConnectionsTest : public ::testing::Test {
 protected:
  BadConnectionsTest() : good_(FakeHost::Start(absl::StrCat("unix:", PathFor("good")))) {}

  // A client through `address` whose snapshot was acknowledged, or null.
  std::unique_ptr<GrpcHostClient> Connect(const std::string& address) {
    const auto channel = NewHostChannel(address);
    // Like HostConnector: retries if a busy machine was too slow at first.
    const absl::Time limit = SteadyNow() + absl::Minutes(1);
    auto host = Handshake(channel, absl::Seconds(10));
    while (!host.ok() && SteadyNow() < limit) host = Handshake(channel, absl::Seconds(10));
    EXPECT_TRUE(host.ok()) << host.status();
    if (!host.ok()) return nullptr;
    auto client = std::make_unique<GrpcHostClient>(&loop_, "session", *host);
    EXPECT_TRUE(client->Configure(ConfigureRequest(), SteadyNow() + absl::Seconds(10)).ok());
    SyncRequest snapshot;
    snapshot.set_version(1);
    snapshot.set_phase(SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (uint32_t i = 0; i < 20; ++i) snapshot.add_changes()->mutable_node_upsert()->set_slot(i);
    client->AwaitSnapshot(1);
    client->SendChanges(snapshot);
    snapshot.clear_changes();
    snapshot.set_phase(SyncRequest::PHASE_SNAPSHOT_END);
    client->SendChanges(snapshot);
    while (!client->usable() && SteadyNow() < limit) loop_.Wait(limit);
    EXPECT_TRUE(client->usable());
    return client;
  }
  // Some calls; each ends in time, with any result.
  void CallAround(GrpcHostClient* client, uint64_t attempt) {
    const absl::Time began = SteadyNow();
    PlanRequest request;
    CycleRequest& cycle = *request.mutable_cycle();
    cycle.mutable_header()->set_attempt_id(attempt);
    cycle.mutable_header()->set_exact_version(1);
    cycle.set_deadline_micros(100000);
    PlanResponse response;
    client->Cycle(request, SteadyNow() + kDeadline, &response).IgnoreError();
    FilterRequest filter;
    client->Filter(filter, SteadyNow() + kDeadline).IgnoreError();
    SyncRequest delta;
    delta.set_phase(SyncRequest::PHASE_DELTA);
    delta.set_version(static_cast<int64_t>(attempt) + 1);
    client->SendChanges(delta);
    loop_.RunReady();
    client->TakePushes();
    EXPECT_LT(SteadyNow() - began, kNotLate) << "attempt " << attempt;
  }

  HostLoop loop_;
  std::unique_ptr<FakeHost> good_;
};

TEST_F(BadConnectionsTest, GarbledBytesEndInErrorsAndNothingElse) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::atomic<Way> way{Way::kClean};
    Listener listener(PathFor(absl::StrCat("garbled-", seed)),
                      [&](int fd) { Pump(PathFor("good"), &way, seed, fd); });
    auto client = Connect(listener.address());
    ASSERT_NE(client, nullptr);
    way = Way::kGarbled;
    for (uint64_t attempt = 1; attempt <= 6; ++attempt) CallAround(client.get(), attempt);
  }
  auto client = Connect(good_->address());
  ASSERT_NE(client, nullptr);
  FilterRequest filter;
  EXPECT_TRUE(client->Filter(filter, SteadyNow() + absl::Seconds(10)).ok());
}

TEST_F(BadConnectionsTest, SlowBytesMissTheirDeadlineAndHoldNothingUp) {
  std::atomic<Way> way{Way::kClean};
  Listener listener(PathFor("slow"), [&](int fd) { Pump(PathFor("good"), &way, 1, fd); });
  auto client = Connect(listener.address());
  ASSERT_NE(client, nullptr);
  way = Way::kSlow;
  FilterRequest filter;
  const absl::Time began = SteadyNow();
  EXPECT_EQ(client->Filter(filter, began + kDeadline).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(SteadyNow() - began, kNotLate);
  CallAround(client.get(), 1);
  way = Way::kClean;
}

TEST_F(BadConnectionsTest, AConnectorGoesOnToHostsThatAnswer) {
  std::mt19937_64 random(1);
  Listener silent(PathFor("silent"), [](int fd) {
    char bytes[64];
    while (read(fd, bytes, sizeof(bytes)) > 0) {
    }
  });
  absl::Mutex mu;
  std::map<std::string, int> asked;  // handshakes by name
  Listener garbage(PathFor("garbage"), [&](int fd) {
    std::string bytes(4096, '\0');
    {
      absl::MutexLock lock(&mu);
      ++asked["garbage"];
      for (char& byte : bytes) byte = static_cast<char>(random());
    }
    send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    shutdown(fd, SHUT_RDWR);
  });
  // Speaks the contract, with invalid answers.
  const auto says = [&](const std::string& name, std::function<void(HandshakeResponse*)> change) {
    testing::ProxyHooks hooks;
    hooks.on_answer = [&, name, change](const google::protobuf::Message&,
                                        google::protobuf::Message* response, grpc::Status*) {
      if (response->GetDescriptor() != HandshakeResponse::descriptor()) return;
      change(static_cast<HandshakeResponse*>(response));
      absl::MutexLock lock(&mu);
      ++asked[name];
    };
    return testing::ProxyHost::Start(absl::StrCat("unix:", PathFor(name)),
                                     NewHostChannel(good_->address()), hooks);
  };
  const auto no_name =
      says("no-name", [](HandshakeResponse* host) { host->set_instance("No Name!"); });
  const auto another_contract =
      says("contract", [](HandshakeResponse* host) { host->set_contract_versions(0, "v9"); });
  const auto too_large = says("large", [](HandshakeResponse* host) {
    host->set_build(std::string(size_t{17} << 20, 'x'));
  });

  config::ShimConfig config;
  for (const char* name : {"silent", "garbage", "no-name", "contract", "large", "good"}) {
    config::HostSpec spec;
    spec.name = name;
    spec.address = absl::StrCat("unix:", PathFor(name));
    config.hosts.push_back(spec);
  }
  std::set<std::string> answered;
  {
    HostConnector::Callbacks callbacks;
    callbacks.on_handshake = [&](const Endpoint& endpoint, const HostConnection&) {
      absl::MutexLock lock(&mu);
      answered.insert(endpoint.host);
    };
    callbacks.on_ready = [](const std::string&, const std::string&, const v1beta1::ProbeResponse&) {
    };
    callbacks.on_draining = callbacks.on_gone = [](const std::string&, const std::string&) {};
    HostConnector connector(config, callbacks);
    const auto has_good = [&]() { return answered.count("good") > 0; };
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&has_good), absl::Minutes(1)));
    // A host that is asked a second time was refused the first time.
    const auto were_refused = [&]() {
      for (const char* name : {"garbage", "no-name", "contract", "large"}) {
        if (asked[name] < 2) return false;
      }
      return true;
    };
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&were_refused), absl::Minutes(1)));
    EXPECT_EQ(answered, std::set<std::string>{"good"});
  }
}

TEST_F(BadConnectionsTest, AHostThatHangsIsReportedUntilItAnswers) {
  config::ShimConfig config;
  config::HostSpec spec;
  spec.name = "good";
  spec.address = good_->address();
  config.hosts.push_back(spec);
  absl::Mutex mu;
  std::vector<absl::Duration> silences;
  int answers = 0;
  HostConnector::Callbacks callbacks;
  callbacks.on_handshake = [](const Endpoint&, const HostConnection&) {};
  callbacks.on_ready = [&](const std::string&, const std::string&, const v1beta1::ProbeResponse&) {
    absl::MutexLock lock(&mu);
    ++answers;
  };
  callbacks.on_draining = callbacks.on_gone = [](const std::string&, const std::string&) {};
  callbacks.on_silent = [&](const std::string& host, const std::string& instance,
                            absl::Duration silence) {
    EXPECT_EQ(host, "good");
    EXPECT_EQ(instance, "fake-1");
    absl::MutexLock lock(&mu);
    silences.push_back(silence);
  };
  good_->Answer<ProbeRequest, ProbeResponse>([](const ProbeRequest&, ProbeResponse* response) {
    response->set_instance("fake-1");
    response->set_state(ProbeResponse::STATE_READY);
    return grpc::Status::OK;
  });
  testing::Fault hangs;
  hangs.delay = absl::Hours(1);
  hangs.times = -1;
  good_->Inject<ProbeRequest>(hangs);
  HostConnector connector(config, callbacks);
  {
    absl::MutexLock lock(&mu);
    const auto twice = [&]() { return silences.size() >= 2; };
    ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&twice), absl::Minutes(1)));
    EXPECT_GE(silences[0], absl::Milliseconds(900));
    EXPECT_GT(silences[1], silences[0] + absl::Milliseconds(900));
    EXPECT_EQ(answers, 0);
  }
  good_->ClearFaults();
  absl::MutexLock lock(&mu);
  const auto answered = [&]() { return answers > 0; };
  ASSERT_TRUE(mu.AwaitWithTimeout(absl::Condition(&answered), absl::Minutes(1)));
}

}  // namespace
}  // namespace outboard::hosts
