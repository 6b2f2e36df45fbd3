#include "shim/hosts/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/testing/fake_host.h"
#include "shim/clock.h"
#include "shim/hosts/grpc_host_client.h"
#include "shim/hosts/host_connector.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::HasSubstr;

class EndpointTest : public ::testing::Test {
 protected:
  EndpointTest() : directory_(absl::StrCat(::testing::TempDir(), "outboard-endpoint-", getpid())) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directory(directory_);
  }
  ~EndpointTest() override { std::filesystem::remove_all(directory_); }
  // A socket without a listener.
  int Socket(const std::string& name) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    absl::StrCat(directory_, "/", name).copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << name;
    return fd;
  }
  const std::string directory_;
};

TEST_F(EndpointTest, SocketsAreNamedAfterTheirHosts) {
  for (const char* name :
       {"main@2.sock", "main@1.sock", "dra.sock", "Not A Name@1.sock", "main@3"}) {
    close(Socket(name));
  }
  std::ofstream(directory_ + "/main@4.sock") << "a file";
  std::vector<std::string> problems;
  auto found = ListSockets(directory_, &problems);
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::string> texts;
  for (const Endpoint& endpoint : *found)
    texts.push_back(
        absl::StrCat(endpoint.host, " ", endpoint.address.substr(5 + directory_.size())));
  EXPECT_THAT(texts, ElementsAre("dra /dra.sock", "main /main@1.sock", "main /main@2.sock"));
  EXPECT_THAT(problems, ElementsAre(HasSubstr("Not A Name@1.sock: the part before @")));
  EXPECT_EQ(ListSockets(directory_ + "/none", &problems).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(EndpointTest, ThePeerMustBeAnAllowedUser) {
  auto fake = FakeHost::Start(absl::StrCat("unix:", directory_, "/main@1.sock"), "one");
  ASSERT_NE(fake, nullptr);
  const Endpoint endpoint = {"main", fake->address(), std::nullopt, 0};
  auto refused = Dial(endpoint, {int64_t{geteuid()} + 1});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(
      std::string(refused.status().message()),
      HasSubstr(absl::StrCat("runs as user ", geteuid(), ", which allowedUids does not list")));
  for (const std::vector<int64_t>& allowed :
       {std::vector<int64_t>{}, std::vector<int64_t>{int64_t{geteuid()}}}) {
    auto channel = Dial(endpoint, allowed);
    ASSERT_TRUE(channel.ok()) << channel.status();
    const auto host = Handshake(*channel, absl::Seconds(10));
    ASSERT_TRUE(host.ok()) << host.status();
    EXPECT_EQ(host->identity.instance(), "one");
  }
}

// The kernel keeps who listened.
TEST_F(EndpointTest, WithoutAListOnlyOurUserAndRootAreAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  constexpr uid_t kOther = 65534;
  const int fd = Socket("main@1.sock");
  std::thread([fd] {
    // The system call, unlike the library's function, changes only this thread.
    ASSERT_EQ(syscall(SYS_setresuid, -1, kOther, -1), 0);
    EXPECT_EQ(listen(fd, 5), 0);
  }).join();
  const Endpoint endpoint = {"main", absl::StrCat("unix:", directory_, "/main@1.sock"),
                             std::nullopt, 0};
  EXPECT_EQ(Dial(endpoint, {}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(Dial(endpoint, {kOther}).ok());
  close(fd);
}

TEST_F(EndpointTest, AHangingHostDoesNotDelayOthers) {
  std::vector<int> hanging;
  config::ShimConfig config;
  for (int i = 0; i < 5; ++i) {
    const std::string path = absl::StrCat(directory_, "/a", i);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    hanging.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(hanging.back(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(listen(hanging.back(), 5), 0);
    config::HostSpec& host = config.hosts.emplace_back();
    host.name = absl::StrCat("a", i);
    host.address = absl::StrCat("unix:", path);
  }
  const std::string address = absl::StrCat("unix:", directory_, "/z");
  const auto fake = FakeHost::Start(address);
  config::HostSpec& answering = config.hosts.emplace_back();
  answering.name = "z";
  answering.address = address;
  absl::Notification answered;
  const absl::Time began = SteadyNow();
  {
    HostConnector connector(config,
                            {[&](Endpoint endpoint, HostConnection) {
                               if (endpoint.host == "z") answered.Notify();
                             },
                             [](std::string, std::string, v1beta1::ProbeResponse) {},
                             [](std::string, std::string) {}, [](std::string, std::string) {}});
    EXPECT_TRUE(answered.WaitForNotificationWithTimeout(absl::Seconds(30)));
    // Each of the others takes a second.
    EXPECT_LT(SteadyNow() - began, absl::Seconds(4));
  }
  for (const int fd : hanging) close(fd);
}

TEST_F(EndpointTest, AMissingSocketIsUnavailable) {
  Socket("main@1.sock");
  for (const char* name : {"main@1.sock", "none.sock"}) {
    EXPECT_EQ(Dial({"main", absl::StrCat("unix:", directory_, "/", name), std::nullopt, 0}, {})
                  .status()
                  .code(),
              absl::StatusCode::kUnavailable);
  }
  config::HostTls tls;
  tls.ca_file = directory_ + "/none.pem";
  EXPECT_EQ(Dial({"main", "127.0.0.1:1", tls, 0}, {}).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace outboard::hosts
