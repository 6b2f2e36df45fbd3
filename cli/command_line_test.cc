#include "cli/command_line.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace outboard::cli {
namespace {

// What `outboard hosts` prints for a wrong --server.
std::string ErrorFor(const std::string& server, int wanted) {
  http::ShimAddress shim;
  config::FlagTable flags;
  AddShimFlags(&flags, &shim);
  shim.server = server;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunParsed("hosts", "", absl::OkStatus(), false,
                      [&] { return http::GetPage(shim, "/hosts", {}, absl::Seconds(1)); }),
            wanted);
  return ::testing::internal::GetCapturedStderr();
}

TEST(CommandLineTest, TellsWhatServerMustBe) {
  EXPECT_EQ(ErrorFor("/run/shim.sock", 2),
            "outboard hosts: --server must be HOST:PORT, unix:PATH or https://HOST:PORT, not "
            "\"/run/shim.sock\"; did you mean unix:/run/shim.sock?\n"
            "Try: outboard hosts --help\n");
  EXPECT_EQ(ErrorFor("ftp://a", 2),
            "outboard hosts: --server must be HOST:PORT, unix:PATH or https://HOST:PORT, not "
            "\"ftp://a\"\n"
            "Try: outboard hosts --help\n");
  EXPECT_THAT(ErrorFor("unix:/nowhere/shim.sock", 1),
              ::testing::StartsWith("outboard hosts: cannot reach a shim at "
                                    "unix:/nowhere/shim.sock: No such file or directory; "));
  EXPECT_THAT(ErrorFor("shim.invalid:1", 1),
              ::testing::StartsWith("outboard hosts: cannot reach a shim at shim.invalid:1: "));
}

TEST(CommandLineTest, TakesTheSocketWhereThereIsOne) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/default_server.", getpid());
  EXPECT_EQ(DefaultServer(path), "127.0.0.1:10269");
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  close(file);
  EXPECT_EQ(DefaultServer(path), "127.0.0.1:10269");
  unlink(path.c_str());
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(name.sun_path));
  memcpy(name.sun_path, path.c_str(), path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  EXPECT_EQ(DefaultServer(path), absl::StrCat("unix:", path));
  close(listener);
  unlink(path.c_str());
}

TEST(CommandLineTest, TellsWhatHostMustBe) {
  const auto error = [](const std::string& address) {
    return std::string(CheckHostAddress("--host", address).message());
  };
  EXPECT_EQ(error("unix:/a"), "");
  EXPECT_EQ(error("h:1"), "");
  EXPECT_EQ(error("[::1]:1"), "");
  EXPECT_EQ(error("/run/a.sock"),
            "--host must be unix:PATH or HOST:PORT, not \"/run/a.sock\"; did you mean "
            "unix:/run/a.sock?");
  EXPECT_EQ(error("unix:"), "--host must be unix:PATH or HOST:PORT, not \"unix:\"");
  EXPECT_EQ(error("main"), "--host must be unix:PATH or HOST:PORT, not \"main\"");
}

}  // namespace
}  // namespace outboard::cli
