#include "shim/cache/cluster_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/cache/testing/model_cache.h"

namespace outboard::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ModelCache;
using Kind = PodOutcome::Kind;

kube::NodePtr MakeNode(const std::string& name, const std::string& zone = "",
                       const std::string& uid = "", const std::string& version = "1") {
  auto node = std::make_shared<kube::NodeObject>();
  node->node.set_name(name);
  node->node.set_uid(uid.empty() ? name + "-uid" : uid);
  if (!zone.empty()) (*node->node.mutable_labels())["topology.kubernetes.io/zone"] = zone;
  node->node.mutable_allocatable()->set_cpu_millis(1000);
  node->node.mutable_allocatable()->set_pods(10);
  node->resource_version = version;
  return node;
}

std::shared_ptr<kube::PodObject> MakePod(const std::string& uid, const std::string& node = "",
                                         const std::string& version = "1") {
  auto pod = std::make_shared<kube::PodObject>();
  pod->pod.set_uid(uid);
  pod->pod.set_namespace_("ns");
  pod->pod.set_name(uid);
  pod->pod.set_node_name(node);
  pod->pod.add_containers()->mutable_requests()->set_cpu_millis(600);
  pod->resource_version = version;
  return pod;
}

HostState StateFor(const std::string& host, const std::string& plugin, const std::string& bytes) {
  HostState state;
  state.host_name = host;
  state.state.set_plugin(plugin);
  state.state.set_state(bytes);
  return state;
}

class ClusterStateTest : public ::testing::Test {
 protected:
  // The changes of the deltas that the host takes now, as text; also applied to the model cache.
  std::vector<std::string> Take(ClusterState::Cursor host) {
    std::vector<std::string> changes;
    for (const auto& request : state_.TakeChanges(host, now_)) {
      model_.Apply(request);
      for (const auto& change : request.changes()) {
        switch (change.change_case()) {
          case v1beta1::Change::kPodPlacement:
            changes.push_back(absl::StrCat(ShortName(change.pod_placement().state()), " ",
                                           change.pod_placement().uid()));
            break;
          case v1beta1::Change::kPodUpsert:
            changes.push_back("pod " + change.pod_upsert().pod().uid());
            break;
          case v1beta1::Change::kPodRemove:
            changes.push_back("gone " + change.pod_remove().uid());
            break;
          case v1beta1::Change::kNodeUpsert:
            changes.push_back("node " + change.node_upsert().node().name());
            break;
          case v1beta1::Change::kNodeRemove:
            changes.push_back(absl::StrCat("free ", change.node_remove().slot()));
            break;
          default:
            changes.push_back(change.ShortDebugString());
        }
      }
      if (request.has_node_order()) changes.push_back("order");
    }
    EXPECT_EQ(model_.fault, "");
    return changes;
  }
  ClusterState::Cursor AddHostNamed(const std::string& name) {
    ChangeEncoder::Fields fields;
    fields.host_name = name;
    return state_.AddHost(fields);
  }
  // PLUGIN=BYTES of the placements that the host takes now.
  std::vector<std::string> TakeStates(ClusterState::Cursor host) {
    std::vector<std::string> states;
    for (const auto& request : state_.TakeChanges(host, now_)) {
      for (const auto& change : request.changes()) {
        for (const auto& its : change.pod_placement().states())
          states.push_back(absl::StrCat(its.plugin(), "=", its.state()));
      }
    }
    return states;
  }
  std::vector<std::string> Order() {
    std::vector<std::string> names;
    for (const uint32_t slot : state_.node_order()) names.push_back(state_.NodeAt(slot)->key());
    return names;
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  ClusterState state_;
  ModelCache model_;
};

TEST_F(ClusterStateTest, SlotsAreDenseStableAndReused) {
  for (const char* name : {"a", "b", "c"}) state_.UpsertNode(MakeNode(name));
  EXPECT_EQ(state_.SlotOf("c"), 2u);
  state_.RemoveNode("a");
  state_.RemoveNode("b");
  EXPECT_EQ(state_.NodeAt(0), nullptr);
  EXPECT_EQ(state_.SlotOf("c"), 2u);
  state_.UpsertNode(MakeNode("d"));
  EXPECT_EQ(state_.SlotOf("d"), 0u) << "the lowest free slot";
  EXPECT_EQ(state_.slot_limit(), 3u);
  EXPECT_EQ(state_.node_count(), 2u);
  EXPECT_EQ(state_.NodeAt(77), nullptr);
}

TEST_F(ClusterStateTest, ASnapshotHasPodsInTheOrderInWhichTheyGotTheirPlaces) {
  state_.UpsertNode(MakeNode("a"));
  std::vector<std::string> expected = {"node a"};
  state_.UpsertPod(MakePod("late"));
  for (int i = 0; i < 20; ++i) {
    const std::string name = absl::StrCat("p", (i * 7) % 20);
    state_.UpsertPod(MakePod(name, "a"));
    expected.push_back("pod " + name);
  }
  ASSERT_TRUE(state_.Assume("late", 0).ok());
  expected.push_back("pod late");
  expected.push_back("ASSUMED late");
  const auto host = state_.AddHost({});
  std::vector<std::string> told = Take(host);
  told.erase(std::remove(told.begin(), told.end(), "order"), told.end());
  EXPECT_EQ(told, expected);
}

TEST_F(ClusterStateTest, OrderFollowsZones) {
  state_.UpsertNode(MakeNode("a", "x"));
  state_.UpsertNode(MakeNode("b", "x"));
  state_.UpsertNode(MakeNode("c", "y"));
  EXPECT_THAT(Order(), ElementsAre("a", "c", "b"));
  EXPECT_EQ(state_.UpsertNode(MakeNode("a", "y", "", "2")).kind, NodeOutcome::Kind::kUpdated);
  EXPECT_THAT(Order(), ElementsAre("b", "c", "a"));
}

TEST_F(ClusterStateTest, ANodeOfAnotherUidIsANewNode) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertNode(MakeNode("b"));
  const auto host = state_.AddHost({});
  Take(host);
  EXPECT_EQ(state_.UpsertNode(MakeNode("a", "", "other")).kind, NodeOutcome::Kind::kReplaced);
  EXPECT_THAT(Order(), ElementsAre("b", "a"));
  EXPECT_THAT(Take(host), ElementsAre("free 0", "node a", "order"));
}

TEST_F(ClusterStateTest, WhatNoHostSeesIsNotSent) {
  state_.UpsertNode(MakeNode("a"));
  auto pod = MakePod("p", "a");
  state_.UpsertPod(pod);
  ChangeEncoder::Fields fields;
  fields.pod_annotations = {"wanted"};
  const auto host = state_.AddHost(fields);
  Take(host);
  auto node = std::make_shared<kube::NodeObject>(*MakeNode("a", "", "", "2"));
  node->conditions = "Ready=False";
  (*node->node.mutable_annotations())["heartbeat"] = "1";
  EXPECT_EQ(state_.UpsertNode(node).kind, NodeOutcome::Kind::kUpdated);
  auto updated = std::make_shared<kube::PodObject>(*pod);
  updated->resource_version = "2";
  updated->scheduled.status = "True";
  (*updated->pod.mutable_annotations())["unwanted"] = "1";
  EXPECT_EQ(state_.UpsertPod(updated).kind, Kind::kUpdatedAssigned);
  EXPECT_EQ(state_.UpsertPod(updated).kind, Kind::kIgnored);
  EXPECT_THAT(Take(host), IsEmpty());
  updated = std::make_shared<kube::PodObject>(*updated);
  updated->resource_version = "3";
  (*updated->pod.mutable_annotations())["wanted"] = "1";
  state_.UpsertPod(updated);
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  EXPECT_EQ(model_.pods["p"].object.annotations_size(), 1);
}

// The conditions of a node as the API server sends them, with what is not part of a condition's
// content left out.
std::string NodeConditions(v1beta1::ConditionStatus ready, int64_t since) {
  v1beta1::Node part;
  part.mutable_capacity()->set_cpu_millis(2000);
  (*part.mutable_capacity()->mutable_scalar())["nvidia.com/gpu"] = 8;
  (*part.mutable_capacity()->mutable_scalar())["hugepages-2Mi"] = 0;
  v1beta1::Condition* condition = part.add_conditions();
  condition->set_type("Ready");
  condition->set_status(ready);
  condition->set_transition_unix_seconds(since);
  v1beta1::NodeAddress* address = part.add_addresses();
  address->set_type("InternalIP");
  address->set_address("10.0.0.1");
  return part.SerializeAsString();
}

TEST_F(ClusterStateTest, ANodesConditionsAreSentOnRequestAndHeartbeatsAreNot) {
  const auto put = [&](const std::string& version, const std::string& on_request) {
    auto node = std::make_shared<kube::NodeObject>(*MakeNode("a", "", "", version));
    node->on_request = on_request;
    state_.UpsertNode(node);
  };
  put("1", NodeConditions(v1beta1::CONDITION_STATUS_TRUE, 100));
  const auto other = state_.AddHost({});
  Take(other);
  EXPECT_FALSE(model_.nodes.at(0).has_capacity());
  EXPECT_TRUE(model_.nodes.at(0).conditions().empty());
  put("2", NodeConditions(v1beta1::CONDITION_STATUS_FALSE, 200));
  EXPECT_THAT(Take(other), IsEmpty()) << "no host declared conditions";

  ChangeEncoder::Fields fields;
  fields.node_conditions = true;
  const auto host = state_.AddHost(fields);
  Take(host);
  const v1beta1::Node& sent = model_.nodes.at(0);
  ASSERT_EQ(sent.conditions_size(), 1);
  EXPECT_EQ(sent.conditions(0).transition_unix_seconds(), 200);
  EXPECT_FALSE(sent.has_capacity()) << "not declared";
  EXPECT_TRUE(sent.addresses().empty());
  put("3", NodeConditions(v1beta1::CONDITION_STATUS_FALSE, 200));
  EXPECT_THAT(Take(host), IsEmpty()) << "a heartbeat changes only the resource version";
  v1beta1::Node elsewhere;
  ASSERT_TRUE(elsewhere.ParseFromString(NodeConditions(v1beta1::CONDITION_STATUS_FALSE, 200)));
  elsewhere.mutable_addresses(0)->set_address("10.0.0.2");
  put("4", elsewhere.SerializeAsString());
  EXPECT_THAT(Take(host), IsEmpty()) << "addresses were not declared";
  put("5", NodeConditions(v1beta1::CONDITION_STATUS_TRUE, 300));
  EXPECT_THAT(Take(host), ElementsAre("node a"));
}

// What the API server and the kubelet write to the status of a pod that was bound.
std::string PodStatus(v1beta1::PodPhase phase, const std::vector<std::string>& conditions) {
  v1beta1::Pod part;
  part.set_service_account_name("robot");
  part.set_phase(phase);
  for (const std::string& type : conditions) {
    v1beta1::Condition* condition = part.add_conditions();
    condition->set_type(type);
    condition->set_status(v1beta1::CONDITION_STATUS_TRUE);
  }
  return part.SerializeAsString();
}

TEST_F(ClusterStateTest, APodsStatusIsSentOnRequestAndOnlyTheDeclaredConditions) {
  state_.UpsertNode(MakeNode("a"));
  const auto put = [&](const std::string& version, const std::string& on_request) {
    auto pod = std::make_shared<kube::PodObject>(*MakePod("p", "a", version));
    pod->on_request = on_request;
    state_.UpsertPod(pod);
  };
  put("1", PodStatus(v1beta1::POD_PHASE_PENDING, {"PodScheduled"}));
  const auto other = state_.AddHost({});
  Take(other);
  EXPECT_EQ(model_.pods["p"].object.service_account_name(), "");
  EXPECT_EQ(model_.pods["p"].object.phase(), v1beta1::POD_PHASE_UNSPECIFIED);
  ChangeEncoder::Fields fields;
  fields.service_account_name = true;
  fields.pod_conditions = {"Ready"};
  const auto host = state_.AddHost(fields);
  Take(host);
  EXPECT_EQ(model_.pods["p"].object.service_account_name(), "robot");
  EXPECT_TRUE(model_.pods["p"].object.conditions().empty());
  EXPECT_EQ(model_.pods["p"].object.resource_version(), "");

  put("2", PodStatus(v1beta1::POD_PHASE_PENDING, {"PodScheduled", "Initialized"}));
  put("3", PodStatus(v1beta1::POD_PHASE_RUNNING, {"PodScheduled", "Initialized"}));
  EXPECT_THAT(Take(host), IsEmpty());
  put("4", PodStatus(v1beta1::POD_PHASE_RUNNING, {"PodScheduled", "Initialized", "Ready"}));
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  ASSERT_EQ(model_.pods["p"].object.conditions_size(), 1);
  EXPECT_EQ(model_.pods["p"].object.conditions(0).type(), "Ready");
  EXPECT_EQ(model_.pods["p"].object.phase(), v1beta1::POD_PHASE_UNSPECIFIED);
  state_.RemoveHost(host);
  Take(other);
  put("5", PodStatus(v1beta1::POD_PHASE_RUNNING, {"PodScheduled", "Initialized"}));
  EXPECT_THAT(Take(other), IsEmpty()) << "no host declares them any longer";
}

TEST_F(ClusterStateTest, AResourceVersionIsNewsOnlyWhileThePodHasNoNode) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p", "", "1"));
  ChangeEncoder::Fields fields;
  fields.resource_version = true;
  const auto host = state_.AddHost(fields);
  Take(host);
  EXPECT_EQ(model_.pods["p"].object.resource_version(), "1");
  state_.UpsertPod(MakePod("p", "", "2"));
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  EXPECT_EQ(model_.pods["p"].object.resource_version(), "2");
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  Take(host);
  EXPECT_EQ(state_.UpsertPod(MakePod("p", "a", "3")).kind, Kind::kConfirmed);
  EXPECT_THAT(Take(host), IsEmpty()) << "bound as assumed";
  state_.UpsertPod(MakePod("q", "a", "4"));
  Take(host);
  state_.UpsertPod(MakePod("q", "a", "5"));
  EXPECT_THAT(Take(host), IsEmpty());
  EXPECT_EQ(model_.pods["q"].object.resource_version(), "4");
}

TEST_F(ClusterStateTest, CommandsAndCustomObjectsAreSentToHostsThatDeclaredThem) {
  auto pod = std::make_shared<kube::PodObject>(*MakePod("p", ""));
  v1beta1::Container* container = pod->pod.add_containers();
  container->add_command("torchrun");
  container->add_args("--nnodes=2");
  (*container->mutable_env())["WORLD_SIZE"] = "8";
  (*container->mutable_env())["NNODES"] = "2";
  state_.UpsertPod(pod);
  ChangeEncoder::Fields fields;
  fields.args = true;
  fields.variables = {"NNODES"};
  fields.custom_resources = {"widgets.v1.example.com"};
  const auto host = state_.AddHost(fields);
  for (const char* resource : {"widgets.v1.example.com", "gadgets.v1.example.com"}) {
    auto object = std::make_shared<kube::ClusterObject>();
    object->object.mutable_generic_object()->set_resource(resource);
    object->object.mutable_generic_object()->set_name("w");
    object->object_uid = object->resource_version = resource;
    state_.UpsertObject(object);
  }
  EXPECT_EQ(state_.ObjectsOfKind("gadgets.v1.example.com").size(), 1u);
  EXPECT_TRUE(state_.ObjectsOfKind("DeviceClass").empty());
  Take(host);
  const v1beta1::Container& sent = *model_.pods["p"].object.containers().rbegin();
  EXPECT_EQ(sent.command_size(), 0);
  EXPECT_EQ(sent.args_size(), 1);
  ASSERT_EQ(sent.env_size(), 1);
  EXPECT_EQ(sent.env().begin()->first, "NNODES");
  ASSERT_EQ(model_.objects.size(), 1u);
  EXPECT_EQ(model_.objects.begin()->second.generic_object().resource(), "widgets.v1.example.com");
  for (const char* resource : {"widgets.v1.example.com", "gadgets.v1.example.com"}) {
    kube::ClusterObject named;
    named.object.mutable_generic_object()->set_resource(resource);
    named.object.mutable_generic_object()->set_name("w");
    state_.RemoveObject(named);
  }
  Take(host);
  EXPECT_TRUE(model_.objects.empty());
}

TEST_F(ClusterStateTest, APodsWayIsSentInSmallSteps) {
  state_.UpsertNode(MakeNode("a"));
  const auto host = state_.AddHost({});
  Take(host);
  EXPECT_EQ(state_.UpsertPod(MakePod("p")).kind, Kind::kAddedPending);
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  EXPECT_EQ(state_.Assume("p", 0).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Take(host), ElementsAre("ASSUMED p"));
  ASSERT_TRUE(state_.SetWaiting("p", 7, {{"Gang", now_ + absl::Seconds(3)}}, now_).ok());
  now_ += absl::Seconds(1);
  EXPECT_THAT(Take(host), ElementsAre("WAITING p"));
  EXPECT_EQ(model_.pods["p"].attempt, 7u);
  EXPECT_EQ(model_.pods["p"].waits["Gang"], 2000);
  ASSERT_TRUE(state_.EndWaiting("p").ok());
  EXPECT_THAT(Take(host), ElementsAre("ASSUMED p"));
  const PodOutcome confirmed = state_.UpsertPod(MakePod("p", "a", "2"));
  EXPECT_EQ(confirmed.kind, Kind::kConfirmed);
  EXPECT_FALSE(state_.IsAssumed("p"));
  EXPECT_THAT(Take(host), IsEmpty());
  auto started = MakePod("p", "a", "3");
  started->pod.set_start_unix_seconds(5);
  EXPECT_EQ(state_.UpsertPod(started).kind, Kind::kUpdatedAssigned);
  EXPECT_THAT(Take(host), ElementsAre("UNPLACED p", "pod p"));
  EXPECT_EQ(model_.pods["p"].place, ModelCache::Place::kBound);
  EXPECT_EQ(state_.UpsertPod(MakePod("p", "a", "4")).kind, Kind::kUpdatedAssigned);
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  const PodOutcome removed = state_.RemovePod("p");
  EXPECT_EQ(removed.kind, Kind::kRemoved);
  EXPECT_EQ(removed.old_node, "a");
  EXPECT_THAT(Take(host), ElementsAre("gone p"));
}

TEST_F(ClusterStateTest, AHostGetsTheStatesOfItsOwnPlugins) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  const auto devices = AddHostNamed("devices");
  const auto network = AddHostNamed("network");
  const auto nameless = state_.AddHost({});
  for (const auto host : {devices, network, nameless}) TakeStates(host);
  const std::vector<HostState> states = {StateFor("devices", "Gpu", "3"),
                                         StateFor("devices", "Fpga", "1"),
                                         StateFor("network", "Ip", "10.0.0.7")};
  EXPECT_EQ(state_.SetStates("p", states).code(), absl::StatusCode::kNotFound) << "not assumed";
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  ASSERT_TRUE(state_.SetStates("p", states).ok());
  EXPECT_THAT(TakeStates(devices), ElementsAre("Gpu=3", "Fpga=1"));
  EXPECT_THAT(TakeStates(network), ElementsAre("Ip=10.0.0.7"));
  EXPECT_THAT(TakeStates(nameless), IsEmpty());
  ASSERT_TRUE(state_.SetWaiting("p", 7, {{"Gang", now_ + absl::Seconds(3)}}, now_).ok());
  EXPECT_THAT(TakeStates(network), ElementsAre("Ip=10.0.0.7"));
  EXPECT_THAT(TakeStates(AddHostNamed("network")), ElementsAre("Ip=10.0.0.7")) << "a snapshot";
  EXPECT_THAT(TakeStates(AddHostNamed("other")), IsEmpty());
}

TEST_F(ClusterStateTest, StatesEndWithThePlacement) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  const auto host = AddHostNamed("h");
  const auto keep = [&] {
    EXPECT_TRUE(state_.Assume("p", 0).ok());
    EXPECT_TRUE(state_.SetStates("p", {StateFor("h", "Gpu", "3")}).ok());
    EXPECT_THAT(TakeStates(host), ElementsAre("Gpu=3"));
  };
  keep();
  ASSERT_TRUE(state_.Forget("p").ok());
  EXPECT_THAT(TakeStates(host), IsEmpty());
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  EXPECT_THAT(TakeStates(host), IsEmpty()) << "of an earlier placement";
  ASSERT_TRUE(state_.Forget("p").ok());
  keep();
  EXPECT_EQ(state_.UpsertPod(MakePod("p", "a", "2")).kind, Kind::kConfirmed);
  EXPECT_THAT(TakeStates(host), IsEmpty());
  EXPECT_THAT(TakeStates(AddHostNamed("h")), IsEmpty()) << "a snapshot of a bound pod";
}

TEST_F(ClusterStateTest, AssumeAndConfirmBetweenTwoTakingsIsAPlace) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  const auto host = state_.AddHost({});
  Take(host);
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  state_.UpsertPod(MakePod("p", "a", "2"));
  EXPECT_THAT(Take(host), ElementsAre("BOUND p"));
}

TEST_F(ClusterStateTest, BindsOfAProfileAreSentInAFewBytes) {
  state_.UpsertNode(MakeNode("a"));
  state_.NotifyBindsOf("keeps");
  const auto host = state_.AddHost({});
  const auto bind = [&](const std::string& uid, const std::string& profile) {
    auto pod = MakePod(uid);
    pod->pod.set_scheduler_name(profile);
    state_.UpsertPod(pod);
    EXPECT_TRUE(state_.Assume(uid, 0).ok());
    Take(host);
    auto bound = MakePod(uid, "a", "2");
    bound->pod.set_scheduler_name(profile);
    EXPECT_EQ(state_.UpsertPod(bound).kind, Kind::kConfirmed);
    return Take(host);
  };
  EXPECT_THAT(bind("p", "keeps"), ElementsAre("BOUND p"));
  EXPECT_EQ(model_.pods["p"].object.node_name(), "a");
  EXPECT_THAT(bind("q", "other"), IsEmpty());
  // The node is deleted and comes back: so do the pods that run there.
  state_.RemoveNode("a");
  Take(host);
  EXPECT_EQ(model_.pods["p"].object.node_name(), "a");
  EXPECT_EQ(model_.pods["q"].object.node_name(), "a");
}

TEST_F(ClusterStateTest, ForgottenPodsGiveTheirRoomBack) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  state_.UpsertPod(MakePod("q"));
  ASSERT_TRUE(state_.CheckFits("p", 0).ok());
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  EXPECT_TRUE(state_.CheckFits("p", 0).ok()) << "counted once";
  EXPECT_EQ(state_.CheckFits("q", 0).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(state_.Forget("p").ok());
  EXPECT_TRUE(state_.CheckFits("q", 0).ok());
  EXPECT_EQ(state_.Forget("p").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(state_.CheckFits("unknown", 0).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(state_.CheckFits("p", 5).code(), absl::StatusCode::kNotFound);
}

TEST_F(ClusterStateTest, TheApiServerIsRightAboutWhereAPodIs) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertNode(MakeNode("b"));
  state_.UpsertPod(MakePod("p"));
  const auto host = state_.AddHost({});
  Take(host);
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  Take(host);
  const PodOutcome outcome = state_.UpsertPod(MakePod("p", "b", "2"));
  EXPECT_EQ(outcome.kind, Kind::kMoved);
  EXPECT_TRUE(outcome.was_assumed);
  EXPECT_EQ(outcome.old_node, "a");
  EXPECT_EQ(state_.NodeOf("p"), "b");
  EXPECT_EQ(state_.assumed_count(), 0u);
  EXPECT_EQ(state_.UsageOf("a")->pods(), 0u);
  EXPECT_THAT(Take(host), ElementsAre("UNPLACED p", "pod p"));
  EXPECT_EQ(model_.pods["p"].slot, 1);
}

TEST_F(ClusterStateTest, DeletedWhileAssumed) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  auto deleting = MakePod("p", "", "2");
  deleting->pod.set_deletion_unix_seconds(9);
  const PodOutcome outcome = state_.UpsertPod(deleting);
  EXPECT_EQ(outcome.kind, Kind::kUpdatedPending);
  EXPECT_TRUE(outcome.deletion_started);
  EXPECT_TRUE(state_.IsAssumed("p"));
  const PodOutcome removed = state_.RemovePod("p");
  EXPECT_TRUE(removed.was_assumed);
  EXPECT_EQ(removed.old_node, "a");
  EXPECT_EQ(state_.UsageOf("a")->pods(), 0u);
  EXPECT_EQ(state_.Forget("p").code(), absl::StatusCode::kNotFound);
}

TEST_F(ClusterStateTest, FinishedPodsAreGone) {
  state_.UpsertNode(MakeNode("a"));
  auto finished = MakePod("p", "a");
  finished->phase = "Failed";
  EXPECT_EQ(state_.UpsertPod(finished).kind, Kind::kIgnored);
  state_.UpsertPod(MakePod("p", "a"));
  auto later = MakePod("p", "a", "2");
  later->phase = "Succeeded";
  EXPECT_EQ(state_.UpsertPod(later).kind, Kind::kRemoved);
  EXPECT_EQ(state_.pod_count(), 0u);
}

TEST_F(ClusterStateTest, ARecreatedNameIsADeleteAndAnAdd) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("old", "a"));
  auto recreated = MakePod("new");
  recreated->pod.set_name("old");
  const PodOutcome outcome = state_.UpsertPod(recreated);
  EXPECT_EQ(outcome.kind, Kind::kAddedPending);
  ASSERT_NE(outcome.replaced, nullptr);
  EXPECT_EQ(outcome.replaced->uid(), "old");
  EXPECT_EQ(state_.FindPod("old"), nullptr);
  EXPECT_EQ(state_.UsageOf("a")->pods(), 0u);
  // The late removal of the old pod does not affect the new one.
  EXPECT_EQ(state_.RemovePod("old").kind, Kind::kIgnored);
  EXPECT_NE(state_.FindPod("new"), nullptr);
}

TEST_F(ClusterStateTest, ANodeThatReturnsHasItsPodsStill) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("bound", "a"));
  state_.UpsertPod(MakePod("assumed"));
  ASSERT_TRUE(state_.Assume("assumed", 0).ok());
  const auto host = state_.AddHost({});
  Take(host);
  EXPECT_EQ(state_.RemoveNode("a").kind, NodeOutcome::Kind::kRemoved);
  EXPECT_EQ(state_.RemoveNode("a").kind, NodeOutcome::Kind::kIgnored);
  EXPECT_EQ(state_.UsageOf("a")->pods(), 2u);
  EXPECT_THAT(Take(host), ElementsAre("free 0", "UNPLACED assumed", "order"));
  state_.UpsertNode(MakeNode("z"));
  Take(host);
  state_.UpsertNode(MakeNode("a", "", "other"));
  EXPECT_EQ(state_.SlotOf("a"), 1u);
  EXPECT_EQ(state_.CheckFits("assumed", 1).code(), absl::StatusCode::kResourceExhausted)
      << "1200 of 1000";
  Take(host);
  EXPECT_EQ(model_.pods["bound"].slot, 1);
  EXPECT_EQ(model_.pods["assumed"].slot, 1);
  state_.RemoveNode("a");
  state_.RemovePod("bound");
  state_.RemovePod("assumed");
  EXPECT_EQ(state_.UsageOf("a"), nullptr) << "no sums are left";
}

TEST_F(ClusterStateTest, NominationsEndWithAPlace) {
  state_.UpsertNode(MakeNode("a"));
  state_.UpsertPod(MakePod("p"));
  const auto host = state_.AddHost({});
  Take(host);
  ASSERT_TRUE(state_.Nominate("p", 0).ok());
  ASSERT_TRUE(state_.Nominate("p", 0).ok());
  EXPECT_THAT(Take(host), ElementsAre("NOMINATED p"));
  ASSERT_TRUE(state_.Assume("p", 0).ok());
  ASSERT_TRUE(state_.Forget("p").ok());
  EXPECT_THAT(Take(host), ElementsAre("UNPLACED p"));
  ASSERT_TRUE(state_.Unnominate("p").ok());
  EXPECT_THAT(Take(host), IsEmpty());
}

TEST_F(ClusterStateTest, ChangesConflateAndVersionsRise) {
  state_.UpsertNode(MakeNode("a"));
  const auto host = state_.AddHost({});
  EXPECT_EQ(state_.VersionOf(host), 0);
  EXPECT_TRUE(state_.HasChanges(host));
  Take(host);
  const int64_t first = state_.VersionOf(host);
  EXPECT_GE(first, 1);
  EXPECT_FALSE(state_.HasChanges(host));
  state_.UpsertPod(MakePod("p"));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(state_.Assume("p", 0).ok());
    ASSERT_TRUE(state_.Forget("p").ok());
  }
  EXPECT_THAT(Take(host), ElementsAre("pod p"));
  EXPECT_GT(state_.VersionOf(host), first);
  state_.UpsertPod(MakePod("passing"));
  state_.RemovePod("passing");
  EXPECT_THAT(Take(host), IsEmpty());
}

TEST_F(ClusterStateTest, EachHostHasItsOwnCursor) {
  const auto one = state_.AddHost({});
  const auto two = state_.AddHost({});
  Take(one);
  state_.UpsertPod(MakePod("p"));
  state_.EndAttempt(one, 5);
  EXPECT_THAT(Take(one), ElementsAre("pod p"));
  EXPECT_THAT(model_.ended_attempts, ElementsAre(5u));
  model_ = ModelCache();
  EXPECT_THAT(Take(two), ElementsAre("pod p", "order"));
  EXPECT_THAT(model_.ended_attempts, IsEmpty());
  EXPECT_THAT(Take(one), IsEmpty());
  state_.Resync(two);
  Take(two);
  EXPECT_EQ(model_.snapshots, 2);
  state_.RemoveHost(two);
  EXPECT_THAT(Take(two), IsEmpty());
}

TEST_F(ClusterStateTest, LargeSnapshotsAndDeltasComeInPieces) {
  const auto host = state_.AddHost({});
  Take(host);
  const auto big = [](int i) {
    auto pod = MakePod(absl::StrCat("p", i));
    (*pod->pod.mutable_labels())["x"] = std::string(600 << 10, 'x');
    return pod;
  };
  for (int i = 0; i < 7; ++i) state_.UpsertPod(big(i));
  state_.UpsertNode(MakeNode("a"));
  const int64_t before = state_.VersionOf(host);
  auto requests = state_.TakeChanges(host, now_);
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].version(), before) << "the version is reached with the last piece";
  EXPECT_EQ(requests[1].version(), before);
  EXPECT_EQ(requests[2].version(), state_.VersionOf(host));
  for (const auto& request : requests) model_.Apply(request);
  EXPECT_EQ(model_.pods.size(), 7u);
  state_.Resync(host);
  requests = state_.TakeChanges(host, now_);
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests.front().phase(), v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
  EXPECT_EQ(requests[1].phase(), v1beta1::SyncRequest::PHASE_SNAPSHOT_MORE);
  EXPECT_EQ(requests.back().phase(), v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
  for (const auto& request : requests) model_.Apply(request);
  EXPECT_EQ(model_.fault, "");
  EXPECT_EQ(model_.pods.size(), 7u);
}

TEST_F(ClusterStateTest, Namespaces) {
  const auto host = state_.AddHost({});
  auto ns = std::make_shared<kube::NamespaceObject>();
  ns->ns.set_name("a");
  EXPECT_TRUE(state_.UpsertNamespace(ns));
  EXPECT_FALSE(state_.UpsertNamespace(ns));
  Take(host);
  EXPECT_EQ(model_.namespaces.count("a"), 1u);
  EXPECT_TRUE(state_.RemoveNamespace("a"));
  EXPECT_FALSE(state_.RemoveNamespace("a"));
  Take(host);
  EXPECT_TRUE(model_.namespaces.empty());
}

kube::ClusterObjectPtr MakeClaim(const std::string& name, const std::string& phase,
                                 const std::string& version, const std::string& uid = "u") {
  auto object = std::make_shared<kube::ClusterObject>();
  v1beta1::PersistentVolumeClaim* claim = object->object.mutable_persistent_volume_claim();
  claim->set_namespace_("ns");
  claim->set_name(name);
  claim->set_phase(phase);
  object->object_uid = uid;
  object->resource_version = version;
  return object;
}

TEST_F(ClusterStateTest, ObjectsAreSentWhenTheirContentChanges) {
  using Kind = ObjectOutcome::Kind;
  const auto host = state_.AddHost({});
  Take(host);
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Pending", "1")).kind, Kind::kAdded);
  EXPECT_THAT(Take(host), ElementsAre("object_upsert { persistent_volume_claim { namespace: \"ns\" "
                                      "name: \"a\" phase: \"Pending\" } }"));
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Bound", "1")).kind, Kind::kIgnored)
      << "the same version again";
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Pending", "2")).kind, Kind::kUpdated);
  EXPECT_THAT(Take(host), IsEmpty()) << "no change that a host can see";
  // Two changes before the host takes them: sent once.
  state_.UpsertObject(MakeClaim("a", "Lost", "3"));
  const ObjectOutcome outcome = state_.UpsertObject(MakeClaim("a", "Bound", "4"));
  EXPECT_EQ(outcome.old->object.persistent_volume_claim().phase(), "Lost");
  EXPECT_THAT(Take(host), ElementsAre(::testing::HasSubstr("phase: \"Bound\"")));
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Bound", "5", "other")).kind, Kind::kReplaced);
  EXPECT_EQ(state_.RemoveObject(*MakeClaim("a", "", "9")).kind, Kind::kRemoved);
  EXPECT_EQ(state_.RemoveObject(*MakeClaim("a", "", "9")).kind, Kind::kIgnored);
  EXPECT_EQ(state_.FindObject(kube::ReferenceTo(MakeClaim("a", "", "9")->object)), nullptr);
  EXPECT_THAT(Take(host), ElementsAre("object_remove { kind: \"PersistentVolumeClaim\" "
                                      "namespace: \"ns\" name: \"a\" }"));
  // Added and removed without being sent.
  state_.UpsertObject(MakeClaim("b", "Bound", "6"));
  state_.RemoveObject(*MakeClaim("b", "", ""));
  EXPECT_THAT(Take(host), IsEmpty());
}

// The result of a write counts at once. What the informer later reports of earlier versions does
// not.
TEST_F(ClusterStateTest, AWrittenObjectCountsBeforeTheInformerReportsIt) {
  using Kind = ObjectOutcome::Kind;
  const absl::Time now = absl::UnixEpoch();
  const auto phase = [this] {
    const auto object = state_.FindObject(kube::ReferenceTo(MakeClaim("a", "", "")->object));
    return object == nullptr ? "none" : object->object.persistent_volume_claim().phase();
  };
  state_.UpsertObject(MakeClaim("a", "Pending", "10"));
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "12"), now).kind, Kind::kUpdated);
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Pending", "11")).kind, Kind::kIgnored);
  EXPECT_EQ(phase(), "Bound");
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Bound", "12")).kind, Kind::kIgnored);
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Lost", "13")).kind, Kind::kUpdated);
  // A late answer brings nothing new. Versions that are not numbers have no order.
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "12"), now).kind, Kind::kIgnored);
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "13"), now).kind, Kind::kIgnored);
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "x14"), now).kind, Kind::kIgnored);
  EXPECT_EQ(phase(), "Lost");
  // From here on the informer is right again, whatever it reports: a restored etcd restarts at
  // lower versions.
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Pending", "5")).kind, Kind::kUpdated);
  EXPECT_TRUE(state_.TakeUnconfirmedObjects(now + absl::Hours(1)).empty());
}

TEST_F(ClusterStateTest, WhatWasMadeAndWentIsNotMadeAgainByALateAnswer) {
  using Kind = ObjectOutcome::Kind;
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "12"), now).kind, Kind::kAdded);
  EXPECT_EQ(state_.UpsertObject(MakeClaim("a", "Pending", "11")).kind, Kind::kIgnored);
  // The removal of its predecessor is reported after its own creation.
  EXPECT_EQ(state_.RemoveObject(*MakeClaim("a", "", "10", "before")).kind, Kind::kIgnored);
  EXPECT_EQ(state_.RemoveObject(*MakeClaim("a", "", "13")).kind, Kind::kRemoved);
  EXPECT_EQ(state_.AssumeObject(MakeClaim("a", "Bound", "12"), now).kind, Kind::kIgnored);
  EXPECT_EQ(state_.object_count(), 0u);
}

TEST_F(ClusterStateTest, WhatTheInformerHasPassedOverForAMinuteIsGone) {
  const absl::Time now = absl::UnixEpoch();
  state_.AssumeObject(MakeClaim("seen", "Bound", "12", "s"), now);
  state_.AssumeObject(MakeClaim("unseen", "Bound", "13", "n"), now);
  state_.AssumeObject(MakeClaim("unseen", "Lost", "15", "n"), now + absl::Seconds(30));
  state_.UpsertObject(MakeClaim("seen", "Bound", "12", "s"));
  // An informer that is late has skipped nothing.
  EXPECT_THAT(state_.TakeUnconfirmedObjects(now + absl::Hours(1)), IsEmpty());
  state_.UpsertObject(MakeClaim("later", "Bound", "16", "l"));
  EXPECT_THAT(state_.TakeUnconfirmedObjects(now + absl::Seconds(80)), IsEmpty());
  const auto unseen = state_.TakeUnconfirmedObjects(now + absl::Seconds(90));
  ASSERT_EQ(unseen.size(), 1u);
  EXPECT_EQ(unseen[0]->uid(), "n");
  EXPECT_EQ(state_.RemoveObject(*unseen[0]).kind, ObjectOutcome::Kind::kRemoved);
}

TEST_F(ClusterStateTest, KnowsTheResourcesForWhichDeviceClassesStand) {
  const auto device_class = [](const std::string& name, const std::string& resource,
                               const std::string& version) {
    auto object = std::make_shared<kube::ClusterObject>();
    object->object.mutable_device_class()->set_name(name);
    object->object.mutable_device_class()->set_extended_resource_name(resource);
    object->object_uid = name;
    object->resource_version = version;
    return object;
  };
  const auto known = [this] {
    std::vector<std::string> names;
    for (const auto& [name, count] : state_.device_class_resources()) names.push_back(name);
    return names;
  };
  using ::testing::UnorderedElementsAre;
  const std::string implicit = "deviceclass.resource.kubernetes.io/";
  state_.UpsertObject(device_class("a", "example.com/gpu", "1"));
  state_.UpsertObject(device_class("b", "example.com/gpu", "1"));
  EXPECT_THAT(known(), UnorderedElementsAre(implicit + "a", implicit + "b", "example.com/gpu"));
  state_.UpsertObject(device_class("a", "", "2"));
  EXPECT_THAT(known(), UnorderedElementsAre(implicit + "a", implicit + "b", "example.com/gpu"));
  state_.RemoveObject(*device_class("b", "", ""));
  EXPECT_THAT(known(), UnorderedElementsAre(implicit + "a"));
}

TEST_F(ClusterStateTest, KindsHaveNamesOfTheirOwnAndComeBeforePods) {
  for (const char* kind : {"ReplicaSet", "StatefulSet"}) {
    auto object = std::make_shared<kube::ClusterObject>();
    object->object.mutable_pod_controller()->set_kind(kind);
    object->object.mutable_pod_controller()->set_namespace_("ns");
    object->object.mutable_pod_controller()->set_name("web");
    EXPECT_EQ(state_.UpsertObject(object).kind, ObjectOutcome::Kind::kAdded);
  }
  state_.UpsertPod(MakePod("p"));
  state_.UpsertObject(MakeClaim("web", "Bound", "1"));
  EXPECT_EQ(state_.object_count(), 3u);
  const auto host = state_.AddHost({});
  EXPECT_EQ(Take(host).size(), 5u) << "three objects, a pod and the order of nodes";
  EXPECT_EQ(model_.objects.size(), 3u);
  state_.UpsertPod(MakePod("q"));
  state_.UpsertObject(MakeClaim("later", "Bound", "1"));
  EXPECT_THAT(Take(host), ElementsAre(::testing::HasSubstr("later"), "pod q"));
}

}  // namespace
}  // namespace outboard::cache
