#include "plugin_host/services/unix_acceptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace outboard::services {
namespace {

class UnixAcceptorTest : public ::testing::Test {
 protected:
  UnixAcceptorTest() : path_(absl::StrCat(::testing::TempDir(), "outboard-acceptor-", getpid())) {
    unlink(path_.c_str());
  }
  ~UnixAcceptorTest() override { unlink(path_.c_str()); }

  sockaddr_un Address() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    return address;
  }
  int Connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address = Address();
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  const std::string path_;
};

TEST_F(UnixAcceptorTest, HandsConnectionsOfItsOwnUserOver) {
  auto acceptor = UnixAcceptor::Listen(path_, 0660, {});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode_t{0660});
  absl::Notification taken;
  (*acceptor)->Serve([&](int fd) {
    EXPECT_EQ(write(fd, "x", 1), 1);
    close(fd);
    taken.Notify();
  });
  const int fd = Connect();
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_TRUE(taken.WaitForNotificationWithTimeout(absl::Seconds(30)));
  close(fd);
  acceptor->reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixAcceptorTest, ClosesConnectionsOfOthers) {
  auto acceptor = UnixAcceptor::Listen(path_, 0600, {int64_t{geteuid()} + 1});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  (*acceptor)->Serve([](int fd) {
    ADD_FAILURE() << "a connection was accepted";
    close(fd);
  });
  const int fd = Connect();
  char byte = 0;
  EXPECT_EQ(read(fd, &byte, 1), 0) << "the acceptor must close it";
  close(fd);
}

TEST_F(UnixAcceptorTest, LeavesTheSocketOfItsSuccessorAlone) {
  auto first = UnixAcceptor::Listen(path_, 0600, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(UnixAcceptor::Listen(path_, 0600, {}).ok()) << "the path is in use";
  // Kept, so that the successor's file differs.
  const std::string aside = path_ + "-aside";
  std::filesystem::rename(path_, aside);
  auto second = UnixAcceptor::Listen(path_, 0600, {});
  ASSERT_TRUE(second.ok()) << second.status();
  first->reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
  unlink(aside.c_str());
}

}  // namespace
}  // namespace outboard::services
