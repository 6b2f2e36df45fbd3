#include "cli/inspect/hosts_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "shim/config/testing/help_flags.h"
#include "shim/http/server.h"

namespace outboard::inspect {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

TEST(HostsCommandTest, HelpListsEveryFlag) {
  HostsLine line;
  EXPECT_THAT(HostsFlags(&line).names(), UnorderedElementsAreArray(config::HelpFlags(kHostsHelp)));
  EXPECT_THAT(SwapFlags(&line).names(), UnorderedElementsAreArray(config::HelpFlags(kSwapHelp)));
  EXPECT_THAT(RollbackFlags(&line).names(),
              UnorderedElementsAreArray(config::HelpFlags(kRollbackHelp)));
}

TEST(HostsTableTest, SaysFirstThatTheApiServerIsAway) {
  EXPECT_EQ(*HostsTable(R"({"time":"2026-01-01T00:10:00.000Z","instances":[],
      "apiServer":"API server https://api has not answered for 40s: Connection refused"})"),
            "warning: API server https://api has not answered for 40s: Connection refused\n"
            "no plugin host has answered yet\n");
}

TEST(HostsTableTest, NamesTheLeaderOnAReplicaThatDoesNotLead) {
  EXPECT_EQ(*HostsTable(R"({"time":"2026-01-01T00:10:00.000Z","instances":[],
      "leader":"outboard-shim-6d8f-x2x7k_0a1b"})"),
            "this replica does not lead; the leader is outboard-shim-6d8f-x2x7k. The hosts of this "
            "one:\nno plugin host has answered yet\n");
  EXPECT_EQ(*HostsTable(R"({"time":"2026-01-01T00:10:00.000Z","instances":[],"leader":""})"),
            "this replica does not lead, and no other one does now. The hosts of this one:\n"
            "no plugin host has answered yet\n");
}

TEST(HostsCommandTest, WrongUsage) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunHosts({"main"}), 2);
  EXPECT_EQ(RunSwap({}), 2);
  EXPECT_EQ(RunSwap({"main", "a", "b"}), 2);
  EXPECT_EQ(RunSwap({"main", "-o", "json"}), 2);
  EXPECT_EQ(RunRollback({}), 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("unknown flag -o"));
}

TEST(HostsCommandTest, SendsCommandsAndAcceptsTheOldNameOfClearQuarantine) {
  http::ServerOptions options;
  options.address = "127.0.0.1:0";
  std::string sent;
  options.command_host = [&](const http::HostCommand& command) {
    sent = absl::StrCat(static_cast<int>(command.kind), " ", command.host, " ", command.instance);
    return absl::OkStatus();
  };
  auto server = http::Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string flag = absl::StrCat("--server=127.0.0.1:", (*server)->port());
  const auto kind = [](http::HostCommand::Kind kind) { return static_cast<int>(kind); };
  EXPECT_EQ(RunSwap({"main", "b", flag}), 0);
  EXPECT_EQ(sent, absl::StrCat(kind(http::HostCommand::Kind::kSwap), " main b"));
  EXPECT_EQ(RunRollback({"main", flag}), 0);
  EXPECT_EQ(sent, absl::StrCat(kind(http::HostCommand::Kind::kRollback), " main "));
  EXPECT_EQ(RunRollback({"main", "--clear-quarantine", flag}), 0);
  EXPECT_EQ(sent, absl::StrCat(kind(http::HostCommand::Kind::kClearQuarantine), " main "));
  sent.clear();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunRollback({"main", "--forgive", flag}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("--forgive is deprecated and will be removed; use --clear-quarantine"));
  EXPECT_EQ(sent, absl::StrCat(kind(http::HostCommand::Kind::kClearQuarantine), " main "));
}

}  // namespace
}  // namespace outboard::inspect
