// The kit against hosts that get nodes in columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/inline_nodes.h"
#include "cli/conformance/kit.h"
#include "cli/conformance/node_columns.h"
#include "proto/testing/fake_host.h"

namespace outboard::conformance {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Rejects cordoned nodes. `checks`: whether it compares columns and nodes.
class ColumnsHost {
 public:
  explicit ColumnsHost(bool checks)
      : checks_(checks),
        host_(testing::FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "/columns-", getpid(), ".sock"))) {
    host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
        [this](const GetHostInfoRequest&, GetHostInfoResponse* response) {
          *response = info;
          return grpc::Status::OK;
        });
    host_->Answer<FilterRequest, FilterResponse>(
        [this](const FilterRequest& request, FilterResponse* response) {
          return Filter(request, response);
        });
    host_->Answer<ScoreRequest, ScoreResponse>(
        [this](const ScoreRequest& request, ScoreResponse* response) {
          const int nodes = request.nodes().slots_size();
          PluginScores* scores = response->add_plugins();
          scores->set_plugin("Columns");
          scores->set_scores(std::string(static_cast<size_t>(nodes), '\x07'));
          return Check(request.node_columns(), nodes);
        });
    info.add_capabilities(CAPABILITY_INLINE_NODES);
    info.add_capabilities(CAPABILITY_NODE_COLUMNS);
    PluginInfo* plugin = info.add_plugins();
    plugin->set_name("Columns");
    plugin->add_extension_points(EXTENSION_POINT_FILTER);
    plugin->add_extension_points(EXTENSION_POINT_SCORE);
    plugin->add_needed_fields("Node.metadata.labels['none']");
  }

  // SERVICE/CASE of the failures among these cases.
  std::vector<std::string> FailuresIn(const std::vector<std::string>& names) const {
    Options options;
    options.endpoint.host = "host";
    options.endpoint.address = host_->address();
    const auto kit = Kit::Connect(options);
    EXPECT_TRUE(kit.ok()) << kit.status();
    if (!kit.ok()) return {"Connect"};
    std::vector<Case> cases;
    for (const Case& one : AllCases()) {
      const std::string name = absl::StrCat(one.service, "/", one.name);
      if (std::find(names.begin(), names.end(), name) != names.end()) cases.push_back(one);
    }
    EXPECT_EQ(cases.size(), names.size());
    std::vector<std::string> failures;
    for (const Result& result : RunCases(**kit, cases, [](const Result&) {})) {
      EXPECT_NE(result.outcome, Result::Outcome::kSkipped) << result.name << ": " << result.what;
      if (result.outcome == Result::Outcome::kFailed)
        failures.push_back(absl::StrCat(result.service, "/", result.name));
    }
    return failures;
  }

  GetHostInfoResponse info;

 private:
  grpc::Status Check(const NodeColumns& columns, int nodes) const {
    if (checks_ && (columns.names_size() != nodes || columns.unschedulable_size() != nodes))
      return testing::CallFailure(CallError::REASON_INVALID, "columns and nodes differ in length");
    const bool is_there =
        std::any_of(columns.labels().begin(), columns.labels().end(),
                    [](const TextColumn& column) { return column.key() == "none"; });
    if (!is_there && checks_)
      return testing::CallFailure(CallError::REASON_INTERNAL, "a named column is missing");
    return grpc::Status::OK;
  }

  grpc::Status Filter(const FilterRequest& request, FilterResponse* response) const {
    const int nodes = request.has_search() ? request.search().nodes().slots_size()
                                           : request.simulation().nodes_size();
    const NodeColumns& columns = request.node_columns();
    bool any = false;
    for (int i = 0; i < nodes; ++i) {
      const bool is_rejected = i < columns.unschedulable_size() && columns.unschedulable(i);
      response->add_verdicts(is_rejected ? 1 : 0);
      any |= is_rejected;
    }
    if (any) {
      PluginStatus* reason = response->add_reasons();
      reason->set_plugin("Columns");
      reason->set_code(CODE_UNSCHEDULABLE);
      reason->add_reasons("cordoned");
    }
    return Check(columns, nodes);
  }

  const bool checks_;
  std::unique_ptr<testing::FakeHost> host_;
};

const std::vector<std::string>& CasesAboutNodes() {
  static const auto* const kCases = new std::vector<std::string>{
      "FilterService/well-formed", "FilterService/again",     "FilterService/given-nodes",
      "FilterService/hypotheses",  "FilterService/columns",   "ScoreService/well-formed",
      "ScoreService/again",        "ScoreService/some-nodes", "ScoreService/columns"};
  return *kCases;
}

TEST(ColumnCasesTest, FindNothingInAGoodHost) {
  EXPECT_THAT(ColumnsHost(/*checks=*/true).FailuresIn(CasesAboutNodes()), IsEmpty());
}

TEST(ColumnCasesTest, FindAHostThatIgnoresTheLengthOfColumns) {
  EXPECT_THAT(ColumnsHost(/*checks=*/false).FailuresIn(CasesAboutNodes()),
              UnorderedElementsAre("FilterService/columns", "ScoreService/columns"));
}

TEST(ColumnCasesTest, FindWhatTheShimRejects) {
  const std::vector<std::string> cases = {"PluginHostService/info"};
  ColumnsHost host(/*checks=*/true);
  EXPECT_THAT(host.FailuresIn(cases), IsEmpty());
  host.info.mutable_plugins(0)->add_needed_fields("Node.pods");
  EXPECT_THAT(host.FailuresIn(cases), ElementsAre(cases[0]));
  host.info.mutable_plugins(0)->clear_needed_fields();
  host.info.mutable_capabilities()->Clear();
  host.info.add_capabilities(CAPABILITY_NODE_COLUMNS);
  EXPECT_THAT(host.FailuresIn(cases), ElementsAre(cases[0]));
}

TEST(NodeColumnsTest, AreTheNodesOfTheCall) {
  const TestCluster cluster = MakeCluster(9);
  FilterRequest request;
  for (const uint32_t slot : {4u, 0u}) request.mutable_search()->mutable_nodes()->add_slots(slot);
  AddInline(cluster, cluster.pending[0].uid(), &request);
  GetHostInfoResponse info;
  info.add_plugins()->add_needed_fields("Node.metadata.labels['none']");
  info.mutable_plugins(0)->add_optional_fields("Node.requested['example.com/gpu']");
  ReplaceByColumns(NamedBy(info), &request);
  EXPECT_THAT(request.inline_nodes(), IsEmpty());
  NodeColumns* columns = request.mutable_node_columns();
  EXPECT_THAT(columns->names(), ElementsAre(cluster.nodes[4].name(), cluster.nodes[0].name()));
  bool has_label = false;
  for (const TextColumn& column : columns->labels()) {
    ASSERT_EQ(column.indexes_size(), 2);
    for (int i = 0; i < 2; ++i) {
      const auto& labels = cluster.nodes[i == 0 ? 4 : 0].labels();
      const auto it = labels.find(column.key());
      const uint32_t index = column.indexes(i);
      ASSERT_EQ(index != 0, it != labels.end()) << column.key();
      if (index == 0) continue;
      EXPECT_EQ(column.values(static_cast<int>(index) - 1), it->second);
    }
    has_label |= column.key() == "none";
  }
  EXPECT_TRUE(has_label);
  bool has_resource = false;
  for (const ResourceColumn& column : columns->requested())
    has_resource |= column.resource() == "example.com/gpu";
  EXPECT_TRUE(has_resource);
  RepeatFirstNode(columns);
  EXPECT_THAT(columns->names(), ElementsAre(cluster.nodes[4].name(), cluster.nodes[0].name(),
                                            cluster.nodes[4].name()));
  EXPECT_EQ(columns->labels(0).indexes_size(), 3);
  RemoveLastNode(columns);
  RemoveLastNode(columns);
  EXPECT_EQ(columns->names_size(), 1);
  EXPECT_EQ(columns->labels(0).indexes_size(), 1);
  EXPECT_EQ(columns->allocatable(0).amounts_size(), 1);
}

}  // namespace
}  // namespace outboard::conformance
