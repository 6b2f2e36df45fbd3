#include "cli/inspect/queue_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "shim/config/testing/help_flags.h"
#include "shim/http/server.h"

namespace outboard::inspect {
namespace {

using ::testing::HasSubstr;

constexpr char kAnswer[] = R"({"time":"2026-01-01T00:10:00.000Z",
  "counts":{"active":0,"backoff":1,"errorBackoff":0,"unschedulable":1,"gated":1,"parked":1,"inFlight":0},
  "pods":[
   {"namespace":"ns","name":"a","where":"backoff","attempts":2,"requeues":1,"lastEvent":"NodeAdd",
    "unschedulablePlugins":["NodeResourcesFit","TaintToleration"],"pendingPlugins":[],
    "lastTransition":"2026-01-01T00:09:58.500Z","backoffUntil":"2026-01-01T00:10:07.000Z"},
   {"namespace":"ns","name":"b","where":"unschedulable","attempts":1,"requeues":0,"lastEvent":"UnschedulablePodAdd",
    "unschedulablePlugins":[],"pendingPlugins":["GangScheduling"],"lastTransition":"2026-01-01T00:00:00.000Z"},
   {"namespace":"ns","name":"c","where":"gated","attempts":0,"requeues":0,"unschedulablePlugins":["SchedulingGates"],
    "pendingPlugins":[],"gatingPlugin":"SchedulingGates","lastTransition":"2025-12-29T00:00:00.000Z"},
   {"namespace":"ns","name":"d","where":"parked","attempts":0,"requeues":0,"unschedulablePlugins":[],
    "pendingPlugins":[],"parkedHost":"main","lastTransition":"2025-12-31T20:00:00.000Z"}],
  "omitted":3,"hosts":[]})";

TEST(QueueTableTest, ShowsPlacesAgesAndReasons) {
  const absl::StatusOr<std::string> table = QueueTable(kAnswer);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(
      *table,
      "0 active, 1 backoff, 0 errorBackoff, 1 unschedulable, 1 gated, 1 parked, 0 inFlight\n"
      "POD   WHERE          FOR  TRIED  REQUEUED  LAST EVENT           REJECTED BY\n"
      "ns/a  backoff        1s   2      1         NodeAdd              "
      "NodeResourcesFit,TaintToleration; back in 7s\n"
      "ns/b  unschedulable  10m  1      0         UnschedulablePodAdd  pending: GangScheduling\n"
      "ns/c  gated          3d   0      0         -                    gated by SchedulingGates; "
      "SchedulingGates\n"
      "ns/d  parked         4h   0      0         -                    waits for host main\n"
      "…and 3 more pods; --limit shows more\n");
  EXPECT_TRUE(absl::IsInternal(QueueTable("<html>").status()));
}

TEST(QueueTableTest, SaysFirstThatTheApiServerIsAway) {
  EXPECT_EQ(*QueueTable(R"({"time":"2026-01-01T00:10:00.000Z","counts":{"active":0},"pods":[],
      "apiServer":"API server https://api has not answered for 40s: Connection refused"})"),
            "warning: API server https://api has not answered for 40s: Connection refused\n"
            "0 active\n");
}

TEST(QueueCommandTest, ReadsItsArguments) {
  const auto line = ParseQueue({"ns/a", "-o", "json", "--server=127.0.0.1:1", "--limit", "7"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->pod, "ns/a");
  EXPECT_TRUE(line->json);
  EXPECT_EQ(line->shim.server, "127.0.0.1:1");
  EXPECT_EQ(line->limit, 7u);
  EXPECT_TRUE(ParseQueue({})->pod.empty());
  EXPECT_TRUE(ParseQueue({"--help"})->help);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"a"}, "\"a\" is not NAMESPACE/NAME"},
      {{"ns/a", "ns/b"}, "give at most one pod"},
      {{"--limit", "many"}, "--limit must be a number"},
      {{"-o", "yaml"}, "--output must be table or json, not \"yaml\""},
      {{"--server"}, "--server needs a value"},
      {{"--all"}, "unknown flag --all"}};
  for (const auto& [arguments, message] : wrong) {
    EXPECT_THAT(std::string(ParseQueue(arguments).status().message()), HasSubstr(message));
  }
}

TEST(QueueCommandTest, HelpListsEveryFlag) {
  QueueLine line;
  EXPECT_THAT(QueueFlags(&line).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kQueueHelp)));
}

TEST(QueueCommandTest, AsksTheShim) {
  http::ServerOptions options;
  options.address = "127.0.0.1:0";
  std::string asked;
  bool fails = false;
  options.queue = [&](size_t limit, const std::string& pod) -> absl::StatusOr<std::string> {
    asked = absl::StrCat(limit, " ", pod);
    if (fails) return absl::UnavailableError("the scheduling thread did not answer in time");
    if (pod == "ns/missing") return std::string(R"({"counts":{},"pods":[]})");
    return std::string(kAnswer);
  };
  auto server = http::Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());

  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunQueue({"--server", address, "--limit", "4"}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("ns/a  backoff"));
  EXPECT_EQ(asked, "4 ");
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunQueue({"ns/a", "--server", address, "-o", "json"}), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), kAnswer);
  EXPECT_EQ(asked, "100 ns/a");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunQueue({"ns/missing", "--server", address}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("ns/missing is not in the queue"));
  fails = true;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunQueue({"--server", address}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("did not answer in time"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunQueue({"--server", address, "--limit", "0"}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("limit must be a positive number"));
  (*server)->Stop();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunQueue({"--server", address}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("cannot reach a shim at "));
}

TEST(QueueCommandTest, NamesTheLeaderInPlaceOfAQueueWithoutAttempts) {
  http::ServerOptions options;
  options.address = "127.0.0.1:0";
  const std::string page = R"({"leader":"shim-b_0a1b","counts":{"active":7},"pods":[]})";
  options.queue = [&](size_t, const std::string&) -> absl::StatusOr<std::string> { return page; };
  auto server = http::Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--server", address}, {"ns/a", "--server", address}}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(RunQueue(arguments), 1);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "outboard queue: this replica does not lead; the leader is shim-b; --output json "
              "shows the queue of this one all the same\n");
  }
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunQueue({"--server", address, "-o", "json"}), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), page);
}

}  // namespace
}  // namespace outboard::inspect
