// What a host without a cluster cache receives, and how the ExtensionPointRunner calls it.
#include "shim/hosts/inline_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "shim/framework/multi_host/extension_point_runner.h"
#include "shim/framework/testing/scripted_host.h"
#include "shim/hosts/needed_fields.h"
#include "shim/hosts/testing/received.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::FilterRequest;
using v1beta1::FilterResponse;
using v1beta1::GetHostInfoResponse;
using v1beta1::InlineNode;

FilterResponse AllFeasible(int count) {
  FilterResponse answer;
  answer.set_processed(static_cast<uint32_t>(count));
  std::string bits(static_cast<size_t>(count + 7) / 8, '\0');
  for (int i = 0; i < count; ++i)
    bits[static_cast<size_t>(i / 8)] |= static_cast<char>(1 << (i % 8));
  answer.set_feasible(bits);
  return answer;
}

class InlineHostTest : public ::testing::Test {
 protected:
  InlineHostTest() {
    for (int i = 1; i <= 3; ++i) PutNode(absl::StrCat("n", i), "blue");
    scripted_.pre_filter = [this](const v1beta1::PreFilterRequest& request) {
      pre_filters_.push_back(testing::Received(request));
      return v1beta1::PreFilterResponse();
    };
    scripted_.filter = [this](const FilterRequest& request) {
      filters_.push_back(testing::Received(request));
      return AllFeasible(request.simulation().nodes().empty()
                             ? request.search().nodes().slots_size()
                             : request.simulation().nodes_size());
    };
    scripted_.score = [this](const v1beta1::ScoreRequest& request) {
      scores_.push_back(testing::Received(request));
      v1beta1::ScoreResponse answer;
      answer.add_plugins()->set_plugin("Fake");
      answer.mutable_plugins(0)->set_scores(
          std::string(static_cast<size_t>(request.nodes().slots_size()), '\x05'));
      return answer;
    };
    Needs({});
  }

  void PutNode(const std::string& name, const std::string& colour) {
    auto node = std::make_shared<kube::NodeObject>();
    node->node.set_uid("uid-" + name);
    node->node.set_name(name);
    (*node->node.mutable_labels())["colour"] = colour;
    (*node->node.mutable_labels())["size"] = "big";
    (*node->node.mutable_annotations())["wanted"] = "yes";
    (*node->node.mutable_annotations())["other"] = "no";
    node->node.add_taints()->set_key("t");
    node->node.add_images()->add_names("image");
    node->node.mutable_allocatable()->set_cpu_millis(4000);
    node->resource_version = absl::StrCat(++resource_version_);
    cluster_.UpsertNode(node);
  }
  void PutPod(const std::string& name, int cpu_millis, const std::string& node = "",
              int priority = 0) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid("uid-" + name);
    pod->pod.set_name(name);
    pod->pod.set_namespace_("default");
    pod->pod.set_node_name(node);
    pod->pod.set_priority(priority);
    (*pod->pod.mutable_annotations())["wanted"] = name;
    (*pod->pod.mutable_annotations())["other"] = "no";
    pod->pod.add_containers()->mutable_requests()->set_cpu_millis(cpu_millis);
    pod->resource_version = absl::StrCat(++resource_version_);
    cluster_.UpsertPod(pod);
  }
  // A host whose plugin declares these fields.
  void Needs(const std::vector<std::string>& fields, bool pre_filter = true) {
    GetHostInfoResponse info;
    auto* plugin = info.add_plugins();
    plugin->mutable_needed_fields()->Assign(fields.begin(), fields.end());
    cache::ChangeEncoder::Fields declared = NeededFields(info);
    declared.pod_annotations = declared.node_annotations = {"wanted"};
    v1beta1::ConfigureRequest configured;
    auto* profile = configured.add_profiles();
    profile->set_name("p");
    profile->add_points()->set_extension_point(pre_filter ? v1beta1::EXTENSION_POINT_PRE_FILTER
                                                          : v1beta1::EXTENSION_POINT_FILTER);
    host_ =
        std::make_unique<InlineHost>(&scripted_, &cluster_, PartsOf(info, declared), configured);
  }
  void Begin(const std::string& pod, uint64_t attempt = 1) {
    v1beta1::PreFilterRequest request;
    request.mutable_header()->set_attempt_id(attempt);
    request.mutable_header()->set_profile("p");
    request.set_pod_uid("uid-" + pod);
    const auto answer = host_->PreFilter(request, absl::InfiniteFuture());
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  // The nodes in a Filter request, by name.
  std::map<std::string, InlineNode> Filter(FilterRequest request = {}) {
    request.mutable_header()->set_attempt_id(1);
    const auto answer = host_->Filter(request, absl::InfiniteFuture());
    EXPECT_TRUE(answer.ok()) << answer.status();
    std::map<std::string, InlineNode> nodes;
    for (const InlineNode& node : filters_.back().inline_nodes()) nodes[node.node().name()] = node;
    return nodes;
  }

  int resource_version_ = 0;
  cache::ClusterState cluster_;
  framework::ScriptedHost scripted_;
  std::unique_ptr<InlineHost> host_;
  std::vector<v1beta1::PreFilterRequest> pre_filters_;
  std::vector<FilterRequest> filters_;
  std::vector<v1beta1::ScoreRequest> scores_;
};

TEST_F(InlineHostTest, SendsByDefaultWhatMostPluginsRead) {
  PutPod("p", 100);
  PutPod("other", 300, "n2");
  Begin("p");
  auto nodes = Filter();
  ASSERT_THAT(nodes, SizeIs(3));
  const InlineNode& node = nodes["n2"];
  EXPECT_EQ(node.node().uid(), "uid-n2");
  EXPECT_EQ(node.node().labels().at("colour"), "blue");
  EXPECT_THAT(node.node().labels(), SizeIs(2));
  EXPECT_THAT(node.node().taints(), SizeIs(1));
  EXPECT_EQ(node.node().allocatable().cpu_millis(), 4000);
  EXPECT_THAT(node.node().annotations(), SizeIs(1));
  EXPECT_THAT(node.node().images(), IsEmpty());
  EXPECT_THAT(node.pods(), IsEmpty());
  EXPECT_EQ(node.requested().cpu_millis(), 300);
  EXPECT_EQ(node.requested().pods(), 1);
  EXPECT_FALSE(node.has_nominated_requested());
  EXPECT_EQ(nodes["n1"].requested().pods(), 0);
  // The pod comes with each call, with the requested annotations.
  EXPECT_EQ(pre_filters_[0].pod().annotations().size(), 1u);
  EXPECT_EQ(filters_[0].pod().annotations().at("wanted"), "p");
  EXPECT_EQ(filters_[0].header().exact_version(), cluster_.version());
}

TEST_F(InlineHostTest, SendsWhatWasAskedForAndNothingElse) {
  Needs({"Node.metadata.labels['size']", "Node.pods", "Node.status.images", "Node.strange"});
  PutPod("p", 100);
  PutPod("other", 300, "n2");
  Begin("p");
  auto nodes = Filter();
  const InlineNode& node = nodes["n2"];
  EXPECT_THAT(node.node().labels(), SizeIs(1));
  EXPECT_EQ(node.node().labels().at("size"), "big");
  EXPECT_THAT(node.node().taints(), IsEmpty());
  EXPECT_FALSE(node.node().has_allocatable());
  EXPECT_THAT(node.node().images(), SizeIs(1));
  EXPECT_FALSE(node.has_requested());
  ASSERT_THAT(node.pods(), SizeIs(1));
  EXPECT_EQ(node.pods(0).name(), "other");
  EXPECT_THAT(node.pods(0).annotations(), SizeIs(1));
}

TEST_F(InlineHostTest, FieldsOnRequestComeBesideTheDefaultParts) {
  auto node = std::make_shared<kube::NodeObject>(*cluster_.NodeAt(0));
  v1beta1::Node status;
  status.mutable_capacity()->set_cpu_millis(8000);
  status.add_addresses()->set_address("10.0.0.1");
  node->on_request = status.SerializeAsString();
  node->resource_version = absl::StrCat(++resource_version_);
  cluster_.UpsertNode(node);
  PutPod("p", 100);
  Begin("p");
  EXPECT_FALSE(Filter()["n1"].node().has_capacity());
  EXPECT_EQ(filters_.back().pod().resource_version(), "");
  Needs({"Node.status.capacity", "Pod.metadata.resourceVersion"});
  Begin("p");
  const InlineNode sent = Filter()["n1"];
  EXPECT_EQ(sent.node().capacity().cpu_millis(), 8000);
  EXPECT_TRUE(sent.node().addresses().empty());
  EXPECT_EQ(sent.node().allocatable().cpu_millis(), 4000);
  EXPECT_EQ(sent.node().labels().at("colour"), "blue");
  EXPECT_EQ(filters_.back().pod().resource_version(), absl::StrCat(resource_version_));
}

TEST_F(InlineHostTest, APluginWithoutPartsGetsTheDefaultsBesideOneWithParts) {
  GetHostInfoResponse info;
  info.add_plugins()->add_needed_fields("Node.status.images");
  info.add_plugins()->add_needed_fields("Node.metadata.annotations['a']");
  const InlineParts parts = PartsOf(info, {});
  EXPECT_TRUE(parts.images && parts.labels && parts.taints && parts.allocatable && parts.requested);
  EXPECT_FALSE(parts.pods || parts.declared_features);
}

TEST_F(InlineHostTest, ChangedNodesAreEncodedAgain) {
  PutPod("p", 100);
  Begin("p");
  Filter();
  PutNode("n1", "red");
  PutPod("other", 300, "n2");
  PutPod("mine", 50);
  ASSERT_TRUE(cluster_.Assume("uid-mine", cluster_.SlotOf("n3")).ok());
  auto nodes = Filter();
  EXPECT_EQ(nodes["n1"].node().labels().at("colour"), "red");
  EXPECT_EQ(nodes["n2"].requested().cpu_millis(), 300);
  EXPECT_EQ(nodes["n3"].requested().cpu_millis(), 50);
  // A node of the same name in the same slot, and a pod that requests less and is deleted.
  cluster_.RemoveNode("n1");
  PutNode("n1", "green");
  PutPod("other", 200, "n2");
  ASSERT_TRUE(cluster_.Forget("uid-mine").ok());
  nodes = Filter();
  EXPECT_EQ(nodes["n1"].node().labels().at("colour"), "green");
  EXPECT_EQ(nodes["n2"].requested().cpu_millis(), 200);
  EXPECT_EQ(nodes["n3"].requested().cpu_millis(), 0);
  cluster_.RemovePod("uid-other");
  EXPECT_EQ(Filter()["n2"].requested().pods(), 0);
}

TEST_F(InlineHostTest, NodesComeInTheOrderOfTheSearch) {
  PutPod("p", 100);
  Begin("p");
  FilterRequest request;
  request.mutable_search()->set_start_offset(4);
  request.mutable_search()->set_num_feasible_nodes_to_find(1);
  Filter(request);
  std::vector<std::string> names;
  for (const InlineNode& node : filters_[0].inline_nodes()) names.push_back(node.node().name());
  EXPECT_THAT(names, ElementsAre("n2", "n3", "n1"));
  EXPECT_EQ(filters_[0].search().nodes().slots(0), cluster_.SlotOf("n2"));
  EXPECT_EQ(filters_[0].search().start_offset(), 0u);
  EXPECT_EQ(filters_[0].search().num_feasible_nodes_to_find(), 3u);
}

TEST_F(InlineHostTest, CountsNominatedPods) {
  Needs({"Node.pods", "Node.requested"});
  PutPod("p", 100, "", 5);
  PutPod("higher", 700, "", 6);
  PutPod("lower", 800, "", 4);
  for (const char* pod : {"uid-p", "uid-higher", "uid-lower"}) {
    ASSERT_TRUE(cluster_.Nominate(pod, cluster_.SlotOf("n2")).ok());
  }
  Begin("p");
  auto nodes = Filter();
  EXPECT_EQ(nodes["n2"].nominated_requested().cpu_millis(), 700);
  ASSERT_THAT(nodes["n2"].nominated_pods(), SizeIs(1));
  EXPECT_EQ(nodes["n2"].nominated_pods(0).name(), "higher");
  EXPECT_EQ(nodes["n2"].requested().pods(), 0);
  EXPECT_FALSE(nodes["n1"].has_nominated_requested());
  FilterRequest named;
  named.mutable_search()->add_nominated()->set_slot(cluster_.SlotOf("n2"));
  Filter(named);
  EXPECT_TRUE(filters_.back().search().nominated().empty()) << "once is enough";
}

TEST_F(InlineHostTest, HypothesesAreNodesAsTheyWouldBe) {
  Needs({"Node.pods", "Node.requested"});
  PutPod("p", 100);
  PutPod("v1", 300, "n2");
  PutPod("v2", 500, "n2");
  Begin("p");
  FilterRequest request;
  for (int i = 0; i < 2; ++i)
    request.mutable_simulation()->add_nodes()->set_slot(cluster_.SlotOf("n2"));
  request.mutable_simulation()->mutable_nodes(0)->add_removed_pod_uids("uid-v1");
  request.mutable_simulation()->mutable_nodes(0)->add_removed_pod_uids("uid-v2");
  request.mutable_simulation()->mutable_nodes(1)->set_continues(true);
  request.mutable_simulation()->mutable_nodes(1)->add_added_pod_uids("uid-v1");
  Filter(request);
  const auto& nodes = filters_[0].inline_nodes();
  ASSERT_THAT(nodes, SizeIs(2));
  EXPECT_EQ(nodes[0].requested().cpu_millis(), 0);
  EXPECT_THAT(nodes[0].pods(), IsEmpty());
  EXPECT_EQ(nodes[1].requested().cpu_millis(), 300);
  EXPECT_EQ(nodes[1].pods(0).name(), "v1");
  EXPECT_EQ(nodes[1].node().name(), "n2");
}

TEST_F(InlineHostTest, ReserveAndPermitBringPodAndNode) {
  PutPod("p", 100);
  ASSERT_TRUE(cluster_.Assume("uid-p", cluster_.SlotOf("n3")).ok());
  std::vector<v1beta1::ReserveRequest> reserves;
  std::vector<v1beta1::PermitRequest> permits;
  scripted_.reserve = [&](const v1beta1::ReserveRequest& request) {
    reserves.push_back(testing::Received(request));
    return v1beta1::ReserveResponse();
  };
  scripted_.permit = [&](const v1beta1::PermitRequest& request) {
    permits.push_back(testing::Received(request));
    return v1beta1::PermitResponse();
  };
  v1beta1::ReserveRequest reserve;
  reserve.set_pod_uid("uid-p");
  reserve.set_node_name("n3");
  EXPECT_TRUE(host_->Reserve(reserve, absl::InfiniteFuture()).ok());
  v1beta1::PermitRequest permit;
  permit.set_pod_uid("uid-p");
  permit.set_node_name("gone");
  EXPECT_TRUE(host_->Permit(permit, absl::InfiniteFuture()).ok());
  EXPECT_EQ(reserves[0].pod().name(), "p");
  EXPECT_EQ(reserves[0].inline_node().node().name(), "n3");
  EXPECT_EQ(reserves[0].inline_node().requested().pods(), 1);
  EXPECT_EQ(permits[0].pod().name(), "p");
  EXPECT_FALSE(permits[0].has_inline_node());
}

TEST_F(InlineHostTest, PreFilterIsNotCalledWithoutAPluginThere) {
  Needs({}, /*pre_filter=*/false);
  PutPod("p", 100);
  Begin("p");
  EXPECT_THAT(pre_filters_, IsEmpty());
  EXPECT_THAT(Filter(), SizeIs(3));
}

TEST_F(InlineHostTest, AnAttemptThatDidNotBeginHereIsUnknown) {
  PutPod("p", 100);
  Begin("p");
  FilterRequest request;
  request.mutable_header()->set_attempt_id(2);
  const auto answer = host_->Filter(request, absl::InfiniteFuture());
  EXPECT_EQ(framework::CallErrorReason(answer.status()),
            v1beta1::CallError::REASON_ATTEMPT_UNKNOWN);
}

// The host with another one, whose plugin comes first.
TEST_F(InlineHostTest, APanelAsksItAboutWhatTheOthersLeft) {
  PutPod("p", 100);
  framework::ScriptedHost first;
  first.pre_filter = [](const v1beta1::PreFilterRequest&) { return v1beta1::PreFilterResponse(); };
  first.filter = [](const FilterRequest&) {
    FilterResponse answer = AllFeasible(3);
    answer.set_feasible("\x05");
    answer.add_rejected(0);
    auto* status = answer.add_reasons();
    status->set_plugin("Early");
    status->set_code(v1beta1::CODE_UNSCHEDULABLE);
    status->add_reasons("no");
    return answer;
  };
  framework::AlgorithmProfile profile;
  profile.name = "p";
  profile.filter_plugins = {"Early", "Fake"};
  profile.shares.resize(2);
  profile.shares[0].filter_plugins = {"Early"};
  profile.shares[1].filter_plugins = {"Fake"};
  profile.main_host = 0;
  const framework::AttemptHosts hosts = {{&first, 1}, {host_.get(), 0}};
  framework::ExtensionPointRunner panel(&hosts, &profile, 1, absl::InfiniteFuture());
  ASSERT_TRUE(panel.PreFilter("uid-p").ok());
  v1beta1::NodeSearch search;
  search.set_start_offset(1);
  const auto answer = panel.Filter(search, cluster_.node_order(), 3);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->processed(), 3u);
  EXPECT_EQ(answer->feasible(), "\x05");
  std::vector<std::string> names;
  for (const InlineNode& node : filters_.at(0).inline_nodes()) names.push_back(node.node().name());
  EXPECT_THAT(names, ElementsAre("n2", "n1"));
  // Its answers are invalid, and it is not required.
  profile.shares[1].filter_fail_open = profile.shares[1].score_fail_open = true;
  scripted_.filter = [](const FilterRequest&) { return AllFeasible(1); };
  framework::ExtensionPointRunner open(&hosts, &profile, 1, absl::InfiniteFuture());
  EXPECT_TRUE(open.Filter(search, cluster_.node_order(), 3).ok());
  ASSERT_THAT(open.ignored_failures(), SizeIs(1));
  EXPECT_EQ(open.ignored_failures()[0].host, 1u);
}

TEST_F(InlineHostTest, AloneItHasItsSampleCutByThePanel) {
  PutPod("p", 100);
  framework::AlgorithmProfile profile;
  profile.name = "p";
  profile.filter_plugins = {"Fake"};
  profile.shares.resize(1);
  profile.shares[0].filter_plugins = {"Fake"};
  const framework::AttemptHosts hosts = {{host_.get(), 0}};
  framework::ExtensionPointRunner panel(&hosts, &profile, 1, absl::InfiniteFuture());
  ASSERT_TRUE(panel.PreFilter("uid-p").ok());
  const auto answer = panel.Filter({}, cluster_.node_order(), 2);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->processed(), 2u);
}

TEST(CheckInlineInfoTest, RejectsCallsThatNeedACache) {
  GetHostInfoResponse info;
  info.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
  info.add_plugins()->set_name("P");
  info.mutable_plugins(0)->add_extension_points(v1beta1::EXTENSION_POINT_POST_FILTER);
  EXPECT_TRUE(CheckInlineInfo(info).ok());
  info.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
  EXPECT_THAT(CheckInlineInfo(info).message(), HasSubstr("FUSED_CYCLE"));
  info.set_capabilities(0, v1beta1::CAPABILITY_INLINE_NODES);
  EXPECT_THAT(CheckInlineInfo(info).message(), HasSubstr("P at POST_FILTER"));
  info.mutable_plugins(0)->set_extension_points(0, v1beta1::EXTENSION_POINT_FILTER);
  EXPECT_TRUE(CheckInlineInfo(info).ok());
}

}  // namespace
}  // namespace outboard::hosts
