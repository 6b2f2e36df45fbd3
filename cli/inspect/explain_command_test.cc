#include "cli/inspect/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cli/inspect/explain_table.h"
#include "shim/config/testing/help_flags.h"
#include "shim/http/server.h"

namespace outboard::inspect {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

constexpr char kExplained[] = R"({"pod":"ns/a","attempts":[
  {"pod":"ns/a","result":"scheduled","node":"n1","message":"",
   "filter":{"n2":{"code":"Unschedulable","plugin":"NodeResourcesFit","reasons":["Insufficient cpu"]},
             "n3":{"code":"Unschedulable","plugin":"NodeResourcesFit","reasons":["Insufficient cpu"]}},
   "scores":{"n0":{"total":90,"plugins":{"ImageLocality":0,"NodeResourcesFit":90}},
             "n1":{"total":95,"plugins":{"ImageLocality":5,"NodeResourcesFit":90}}},
   "profile":"default-scheduler","time":"2026-01-01T00:00:00.000Z","snapshotVersion":7,"nodes":4,
   "evaluatedNodes":4,"feasibleNodes":2,"algorithmMicros":80},
  {"pod":"ns/a","result":"unschedulable","node":"","message":"0/4 nodes are available: 4 Insufficient cpu.",
   "filter":{},"scores":{},"profile":"default-scheduler","time":"2025-12-31T23:59:00.000Z"}]})";

TEST(ExplainTableTest, GroupsNodesByReasonAndShowsTheChosenOneFirst) {
  const absl::StatusOr<std::string> table = ExplainTable(kExplained, "");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table,
              HasSubstr("ns/a  2026-01-01T00:00:00.000Z  default-scheduler  scheduled on n1\n"));
  EXPECT_THAT(*table, HasSubstr("4 nodes, 4 evaluated, 2 feasible; snapshot 7, 80 µs\n"));
  EXPECT_THAT(
      *table,
      HasSubstr(
          "  rejected  2 nodes  NodeResourcesFit: Insufficient cpu [Unschedulable]  (n2, n3)\n"));
  EXPECT_THAT(
      *table,
      HasSubstr("  chosen    n1  95 = ImageLocality 5, NodeResourcesFit 90\n  scored    n0  90"));
  EXPECT_THAT(*table, HasSubstr("  0/4 nodes are available: 4 Insufficient cpu.\n"));
}

TEST(ExplainTableTest, OneNodeOnly) {
  const absl::StatusOr<std::string> table = ExplainTable(kExplained, "n3");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, AllOf(HasSubstr("(n3)"), Not(HasSubstr("n2")), Not(HasSubstr("scored"))));
  const absl::StatusOr<std::string> json = OnlyNode(kExplained, "n0");
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, AllOf(HasSubstr("\"n0\""), Not(HasSubstr("\"n2\""))));
  EXPECT_TRUE(absl::IsNotFound(ExplainTable(kExplained, "n9").status()));
  EXPECT_TRUE(absl::IsInternal(ExplainTable("<html>", "").status()));
}

TEST(ExplainCommandTest, ReadsItsArguments) {
  const auto line =
      ParseExplain({"pod", "ns/a", "-o", "json", "--server=127.0.0.1:1", "--node", "n"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->pod, "ns/a");
  EXPECT_EQ(ParseExplain({"ns/a"})->pod, "ns/a");
  EXPECT_TRUE(line->json);
  EXPECT_EQ(line->shim.server, "127.0.0.1:1");
  EXPECT_EQ(line->node, "n");
  const auto node = ParseExplain({"node", "gpu-7", "-f", "a.yaml", "-f", "-"});
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_TRUE(node->of_node);
  EXPECT_EQ(node->node, "gpu-7");
  EXPECT_EQ(node->files, (std::vector<std::string>{"a.yaml", "-"}));
  const auto of_cluster = ParseExplain({"node", "gpu-7", "--kubeconfig", "k", "--context", "c"});
  ASSERT_TRUE(of_cluster.ok()) << of_cluster.status();
  EXPECT_EQ(of_cluster->cluster.kubeconfig, "k");
  EXPECT_EQ(of_cluster->cluster.context, "c");
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "the pod is missing, as NAMESPACE/NAME"},
      {{"pod"}, "the pod is missing, as NAMESPACE/NAME"},
      {{"node"}, "explain node needs the NAME of a node of the cluster, or -f FILE"},
      {{"node", "n1", "-f", "-", "--context", "c"},
       "--filename reads files in place of the cluster"},
      {{"node", "n1", "n2", "-f", "-"}, "n2"},
      {{"ns/a", "-f", "-"},
       "--filename, --price-list, --kubeconfig, --context and --host-binary are for outboard "
       "explain node"},
      {{"ns/a", "--kubeconfig", "k"}, "are for outboard explain node"},
      {{"ns/a", "--price-list", "p"}, "are for outboard explain node"},
      {{"a"}, "\"a\" is not NAMESPACE/NAME; did you mean default/a?"},
      {{"pod", "ns/a", "-o", "yaml"}, "--output must be table or json, not \"yaml\""},
      {{"pod", "ns/a", "--server"}, "--server needs a value"},
      {{"pod", "ns/a", "--all"}, "unknown flag --all"}};
  for (const auto& [arguments, message] : wrong) {
    EXPECT_THAT(std::string(ParseExplain(arguments).status().message()), HasSubstr(message));
  }
}

TEST(ExplainCommandTest, HelpListsEveryFlag) {
  ExplainLine line;
  EXPECT_THAT(ExplainFlags(&line).names(),
              UnorderedElementsAreArray(config::HelpFlags(kExplainHelp)));
}

TEST(ExplainCommandTest, AsksTheShim) {
  http::ServerOptions options;
  options.address = "127.0.0.1:0";
  options.explain = [](const std::string& pod) -> absl::StatusOr<std::string> {
    if (pod == "ns/a") return std::string(kExplained);
    return absl::NotFoundError("nothing is known of " + pod);
  };
  auto server = http::Server::Start(std::move(options));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*server)->port());
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(RunExplain({"pod", "ns/a", "--server", address}), 0);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("scheduled on n1"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunExplain({"pod", "ns/b", "--server", address}), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("nothing is known of ns/b"));
  (*server)->Stop();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(RunExplain({"pod", "ns/a", "--server", address}), 1);
  EXPECT_EQ(
      ::testing::internal::GetCapturedStderr(),
      absl::StrCat("outboard explain: cannot reach a shim at ", address,
                   ": Connection refused; is outboard-shim running?\n"
                   "In a cluster: kubectl -n outboard-system exec deployment/outboard-shim -c shim "
                   "-- outboard hosts\n"));
}

}  // namespace
}  // namespace outboard::inspect
