#include "shim/http/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "shim/http/client.h"
#include "shim/http/server.h"

namespace outboard::http::unix_socket_test {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kAnswer = absl::Seconds(30);

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string name = absl::StrCat(::testing::TempDir(), "/pages.XXXXXX");
    folder_ = mkdtemp(name.data());
    path_ = absl::StrCat(folder_, "/shim.sock");
    shim_.server = absl::StrCat("unix:", path_);
  }
  ~UnixSocketTest() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  absl::StatusOr<std::unique_ptr<Server>> Serve() {
    ServerOptions options;
    options.address = shim_.server;
    options.version_json = "{\"version\":\"7\"}";
    options.follower_note = [this] { return note_; };
    options.explain = [](const std::string&) -> absl::StatusOr<std::string> {
      return absl::NotFoundError("no recorded attempt");
    };
    options.command_host = [](const HostCommand&) { return absl::OkStatus(); };
    return Server::Start(std::move(options));
  }

  sockaddr_un Name() const {
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    EXPECT_LT(path_.size(), sizeof(name.sun_path));
    path_.copy(name.sun_path, sizeof(name.sun_path) - 1);
    return name;
  }

  // Without allocations: for a child process beside threads.
  bool GetsAnAnswer() const {
    const sockaddr_un name = Name();
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0)
      return false;
    constexpr char kRequest[] = "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n";
    send(connection, kRequest, sizeof(kRequest) - 1, MSG_NOSIGNAL);
    char first;
    return recv(connection, &first, 1, 0) > 0;
  }

  // Leaves a socket behind as a process does that is killed.
  void LeaveSocket() {
    const sockaddr_un name = Name();
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    ASSERT_EQ(listen(listener, 1), 0);
    close(listener);
  }

  std::string folder_;
  std::string path_;
  ShimAddress shim_;
  std::string note_;
};

TEST_F(UnixSocketTest, ServesPagesAndCommands) {
  const auto server = Serve();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ((*server)->port(), 0);
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto version = GetPage(shim_, "/version", {}, kAnswer);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, "{\"version\":\"7\"}");
  const auto swapped = Command(shim_, "/hosts/swap", {{"host", "main"}}, kAnswer);
  ASSERT_TRUE(swapped.ok()) << swapped.status();
  EXPECT_EQ(*swapped, "ok\n");
  (*server)->Stop();
  EXPECT_NE(stat(path_.c_str(), &status), 0) << "the socket is left";
  EXPECT_THAT(GetPage(shim_, "/version", {}, kAnswer).status().message(),
              HasSubstr("No such file or directory"));
}

TEST_F(UnixSocketTest, AFollowerNamesTheLeader) {
  const auto server = Serve();
  ASSERT_TRUE(server.ok()) << server.status();
  note_ = "this replica does not lead; the leader is a";
  EXPECT_EQ(GetPage(shim_, "/explain", {{"pod", "a/b"}}, kAnswer).status().message(),
            "no recorded attempt; this replica does not lead; the leader is a");
  EXPECT_EQ(*Command(shim_, "/hosts/swap", {{"host", "main"}}, kAnswer),
            "ok, but this replica does not lead; the leader is a\n");
}

TEST_F(UnixSocketTest, ReplacesTheSocketOfAProcessThatEnded) {
  LeaveSocket();
  EXPECT_THAT(GetPage(shim_, "/version", {}, kAnswer).status().message(),
              HasSubstr("Connection refused"));
  const auto server = Serve();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(GetPage(shim_, "/version", {}, kAnswer).ok());
}

TEST_F(UnixSocketTest, LeavesTheSocketOfAProcessThatServes) {
  const auto first = Serve();
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = Serve();
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr("another process accepts connections there"));
  EXPECT_TRUE(GetPage(shim_, "/version", {}, kAnswer).ok());
}

TEST_F(UnixSocketTest, LeavesOtherFiles) {
  std::ofstream(path_) << "text";
  const auto server = Serve();
  EXPECT_THAT(server.status().message(), HasSubstr("the file is not a socket"));
  struct stat status;
  EXPECT_EQ(stat(path_.c_str(), &status), 0);
}

TEST_F(UnixSocketTest, SaysWhyThereIsNone) {
  shim_.server = absl::StrCat("unix:", folder_, "/", std::string(120, 'x'));
  EXPECT_EQ(Serve().status().code(), absl::StatusCode::kUnavailable);
  shim_.server = absl::StrCat("unix:", folder_, "/gone/shim.sock");
  EXPECT_EQ(Serve().status().code(), absl::StatusCode::kUnavailable);
}

// Root may connect to any socket: the mode of the file does not protect a server of another user.
TEST_F(UnixSocketTest, ServesOtherUsersNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const auto server = Serve();
  ASSERT_TRUE(server.ok()) << server.status();
  chmod(path_.c_str(), 0666);
  chmod(folder_.c_str(), 0755);
  const pid_t other = fork();
  if (other == 0) {
    // 65533 is neither root nor the server's user.
    if (setgid(65533) != 0 || setuid(65533) != 0) _exit(2);
    _exit(GetsAnAnswer() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: another user got a page";
  EXPECT_TRUE(GetsAnAnswer());
}

}  // namespace
}  // namespace outboard::http::unix_socket_test
