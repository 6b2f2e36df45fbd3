#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(
      ErrorFor("/run/host.sock", 2),
      "outboard hosts: --server must be the shim's servingAddress HOST:PORT or its "
      "secureServing https://HOST:PORT, not \"/run/host.sock\"; the socket of a plugin host is "
      "for --host of other commands, then unix:/run/host.sock\n"
      "Try: outboard hosts --help\n");
  EXPECT_EQ(ErrorFor("ftp://a", 2),
            "outboard hosts: --server must be HOST:PORT or https://HOST:PORT, not \"ftp://a\"\n"
            "Try: outboard hosts --help\n");
  EXPECT_THAT(ErrorFor("shim.invalid:1", 1),
              ::testing::StartsWith("outboard hosts: cannot reach a shim at shim.invalid:1: "));
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
