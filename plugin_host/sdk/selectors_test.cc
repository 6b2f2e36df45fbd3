#include "plugin_host/sdk/selectors.h"

#include <gtest/gtest.h>

#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using Op = v1beta1::SelectorRequirement;

Op MakeRequirement(const std::string& key, Op::Operator op, std::vector<std::string> values) {
  Op requirement;
  requirement.set_key(key);
  requirement.set_operator_(op);
  for (auto& value : values) requirement.add_values(std::move(value));
  return requirement;
}

// A node n1 with labels zone=a, size=10, odd=x1.
class NodeSelectorTest : public ::testing::Test {
 protected:
  NodeSelectorTest() {
    v1beta1::SyncRequest request;
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    *request.add_changes()->mutable_node_upsert()->mutable_node() = testing::NodeBuilder("n1")
                                                                        .Label("zone", "a")
                                                                        .Label("size", "10")
                                                                        .Label("odd", "x1")
                                                                        .Build();
    EXPECT_TRUE(cache_.Apply(request, absl::UnixEpoch()).ok());
  }
  NodeView node() { return cache_.view().node(0); }
  bool Matches(const Op& requirement) {
    v1beta1::NodeSelectorTerm term;
    *term.add_match_expressions() = requirement;
    return CompiledNodeTerm::Parse(term, "").Matches(node());
  }
  bool FieldMatches(const Op& requirement) {
    v1beta1::NodeSelectorTerm term;
    *term.add_match_fields() = requirement;
    return CompiledNodeTerm::Parse(term, "").Matches(node());
  }
  host_cache::ClusterCache cache_;
};

TEST_F(NodeSelectorTest, OperatorsMeanWhatKubernetesMeans) {
  EXPECT_TRUE(Matches(MakeRequirement("zone", Op::OPERATOR_IN, {"b", "a"})));
  EXPECT_FALSE(Matches(MakeRequirement("zone", Op::OPERATOR_IN, {"b"})));
  EXPECT_FALSE(Matches(MakeRequirement("none", Op::OPERATOR_IN, {"a"})));
  EXPECT_TRUE(Matches(MakeRequirement("none", Op::OPERATOR_NOT_IN, {"a"})));
  EXPECT_FALSE(Matches(MakeRequirement("zone", Op::OPERATOR_NOT_IN, {"a"})));
  EXPECT_TRUE(Matches(MakeRequirement("zone", Op::OPERATOR_EXISTS, {})));
  EXPECT_TRUE(Matches(MakeRequirement("none", Op::OPERATOR_DOES_NOT_EXIST, {})));
  EXPECT_TRUE(Matches(MakeRequirement("size", Op::OPERATOR_GT, {"9"})));
  EXPECT_FALSE(Matches(MakeRequirement("size", Op::OPERATOR_GT, {"10"})));
  EXPECT_TRUE(Matches(MakeRequirement("size", Op::OPERATOR_LT, {"11"})));
  EXPECT_FALSE(Matches(MakeRequirement("odd", Op::OPERATOR_LT, {"11"})));
  EXPECT_FALSE(Matches(MakeRequirement("none", Op::OPERATOR_LT, {"11"})));
}

TEST_F(NodeSelectorTest, FieldsTakeOneValue) {
  EXPECT_TRUE(FieldMatches(MakeRequirement("metadata.name", Op::OPERATOR_IN, {"n1"})));
  EXPECT_FALSE(FieldMatches(MakeRequirement("metadata.name", Op::OPERATOR_NOT_IN, {"n1"})));
  EXPECT_FALSE(FieldMatches(MakeRequirement("metadata.name", Op::OPERATOR_IN, {"n1", "n2"})));
}

TEST_F(NodeSelectorTest, ErrorsAreReportedOnlyWhereNoTermMatches) {
  v1beta1::NodeSelector selector;
  *selector.add_node_selector_terms()->add_match_expressions() =
      MakeRequirement("size", Op::OPERATOR_GT, {"many"});
  absl::StatusOr<bool> matches = CompiledNodeSelector(selector).Matches(node());
  ASSERT_FALSE(matches.ok());
  EXPECT_EQ(matches.status().message(),
            "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"many\": for "
            "'Gt', 'Lt' operators, the value must be an integer");
  *selector.add_node_selector_terms()->add_match_expressions() =
      MakeRequirement("zone", Op::OPERATOR_IN, {"a"});
  matches = CompiledNodeSelector(selector).Matches(node());
  ASSERT_TRUE(matches.ok());
  EXPECT_TRUE(*matches);
}

TEST_F(NodeSelectorTest, EmptyTermsMatchNothing) {
  v1beta1::NodeSelector selector;
  selector.add_node_selector_terms();
  EXPECT_FALSE(*CompiledNodeSelector(selector).Matches(node()));
  google::protobuf::RepeatedPtrField<v1beta1::PreferredSchedulingTerm> terms;
  terms.Add()->set_weight(5);
  v1beta1::PreferredSchedulingTerm* term = terms.Add();
  term->set_weight(7);
  *term->mutable_preference()->add_match_expressions() =
      MakeRequirement("zone", Op::OPERATOR_EXISTS, {});
  EXPECT_EQ(PreferredNodeTerms::Parse(terms)->Score(node()), 7);
}

TEST_F(NodeSelectorTest, NodeSelectorAndAffinityMustBothHold) {
  testing::PodBuilder pod("p");
  EXPECT_TRUE(RequiredNodeAffinity(pod).empty());
  pod.NodeSelector("zone", "a");
  EXPECT_TRUE(*RequiredNodeAffinity(pod).Matches(node()));
  v1beta1::NodeAffinity* affinity = pod.proto().mutable_affinity()->mutable_node_affinity();
  v1beta1::NodeSelector* selector =
      affinity->mutable_required_during_scheduling_ignored_during_execution();
  EXPECT_FALSE(*RequiredNodeAffinity(pod).Matches(node()));
  *selector->add_node_selector_terms()->add_match_expressions() =
      MakeRequirement("size", Op::OPERATOR_IN, {"10"});
  EXPECT_TRUE(*RequiredNodeAffinity(pod).Matches(node()));
}

TEST(LabelSelectorTest, EmptyMatchesAllAndAbsentNothing) {
  const std::map<std::string, std::string> labels = {{"app", "web"}};
  EXPECT_FALSE(CompiledLabelSelector().Matches(labels));
  EXPECT_TRUE(CompiledLabelSelector::Parse({})->Matches(labels));
  v1beta1::LabelSelector selector;
  (*selector.mutable_match_labels())["app"] = "web";
  EXPECT_TRUE(CompiledLabelSelector::Parse(selector)->Matches(labels));
  *selector.add_match_expressions() = MakeRequirement("tier", Op::OPERATOR_EXISTS, {});
  EXPECT_FALSE(CompiledLabelSelector::Parse(selector)->Matches(labels));
  *selector.add_match_expressions() = MakeRequirement("tier", Op::OPERATOR_GT, {"1"});
  EXPECT_EQ(CompiledLabelSelector::Parse(selector).status().message(),
            "\"Gt\" is not a valid label selector operator");
}

TEST(ParseGoIntTest, TakesWhatGoTakes) {
  EXPECT_EQ(ParseGoInt("-5"), -5);
  EXPECT_EQ(ParseGoInt("+5"), 5);
  EXPECT_EQ(ParseGoInt("007"), 7);
  for (const char* bad : {"", "+", "-", "1.0", " 1", "1 ", "0x1", "+-1", "9223372036854775808"}) {
    EXPECT_FALSE(ParseGoInt(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace outboard::sdk
