// Groups placed in one pass, compared with an exhaustive search; and constraints on plans.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/pod_groups.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/plans_harness.h"

namespace outboard::plans::group_plans_test {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

constexpr int kCases = 10000;
constexpr char kRack[] = "rack";
const std::vector<std::string> kPlugins = {"NodeUnschedulable",
                                           "TaintToleration",
                                           "NodeAffinity",
                                           "NodeResourcesFit",
                                           "PodTopologySpread",
                                           "InterPodAffinity",
                                           "NodeResourcesBalancedAllocation",
                                           "AtomicReplicaCoordinator",
                                           "DefaultPreemption"};

struct Shape {
  int64_t cpu = 0, gpu = 0;
};
struct Room {
  int64_t cpu = 0, gpu = 0, pods = 0;
  std::string rack;
};

v1beta1::ClusterObject PodGroup(const std::string& name, int min, const std::string& rack_key) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& custom = *object.mutable_generic_object();
  custom.set_resource(std::string(sdk::GroupResource(sdk::GroupDialect::kKubernetes)));
  custom.set_namespace_("default");
  custom.set_name(name);
  custom.set_uid(absl::StrCat("uid-", name));
  custom.set_resource_version("1");
  const std::string topology =
      rack_key.empty() ? ""
                       : absl::StrCat(R"(, "schedulingConstraints": {"topology": [{"key": ")",
                                      rack_key, R"("}]})");
  custom.set_json(absl::StrCat(R"({"metadata": {"name": ")", name,
                               R"("}, "spec": {"schedulingPolicy": {"gang": {"minCount": )", min,
                               "}}", topology, "}}"));
  return object;
}

v1beta1::Pod MemberPod(const std::string& name, const Shape& shape, const std::string& group) {
  PodBuilder pod(name);
  pod.Requests({{"cpu", absl::StrCat(shape.cpu)}, {"nvidia.com/gpu", absl::StrCat(shape.gpu)}});
  pod.proto().set_pod_group_name(group);
  pod.proto().set_scheduler_name("p");
  return pod;
}

v1beta1::Node NodeOf(const std::string& name, const Room& room) {
  NodeBuilder node(name);
  node.Allocatable({{"cpu", absl::StrCat(room.cpu)},
                    {"memory", "64Gi"},
                    {"pods", absl::StrCat(room.pods)},
                    {"nvidia.com/gpu", absl::StrCat(room.gpu)}});
  node.Label("kubernetes.io/hostname", name);
  if (!room.rack.empty()) node.Label(kRack, room.rack);
  return node;
}

// Whether `needed` members fit, including the first: tries every placement.
bool FitsSomehow(std::vector<Room> rooms, const std::vector<Shape>& members, size_t needed) {
  const std::function<bool(size_t, size_t)> place = [&](size_t k, size_t placed) {
    if (placed + (members.size() - k) < needed) return false;
    if (k == members.size()) return placed >= needed;
    const Shape& shape = members[k];
    for (Room& room : rooms) {
      if (room.cpu < shape.cpu || room.gpu < shape.gpu || room.pods < 1) continue;
      room = {room.cpu - shape.cpu, room.gpu - shape.gpu, room.pods - 1, room.rack};
      const bool fits = place(k + 1, placed + 1);
      room = {room.cpu + shape.cpu, room.gpu + shape.gpu, room.pods + 1, room.rack};
      if (fits) return true;
    }
    return k > 0 && place(k + 1, placed);
  };
  return place(0, 0);
}

struct Tally {
  int feasible = 0, placed = 0, infeasible = 0;
};

class GroupPlansTest : public ::testing::Test {
 protected:
  // A random group; `kinds`: the number of its members' shapes.
  void RunCase(uint64_t seed, int kinds, Tally* tally) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    const bool by_rack = below(2) == 0;
    std::vector<Room> rooms;
    std::vector<v1beta1::Node> nodes;
    const int num_nodes = 1 + below(5);
    for (int i = 0; i < num_nodes; ++i) {
      Room room{1 + below(6), below(5), 1 + below(5), ""};
      if (below(6) != 0) room.rack = absl::StrCat("r", below(2));
      rooms.push_back(room);
      nodes.push_back(NodeOf(absl::StrCat("n", i), room));
    }
    std::vector<Shape> shapes;
    for (int i = 0; i < kinds; ++i) shapes.push_back({1 + below(3), below(3)});
    std::vector<Shape> members;
    std::vector<v1beta1::Pod> pods;
    const int size = std::max(2, kinds) + below(5);
    for (int i = 0; i < size; ++i) {
      members.push_back(shapes[static_cast<size_t>(below(kinds))]);
      pods.push_back(MemberPod(absl::StrCat("m", i), members.back(), "g"));
    }
    const int min = below(3) == 0 ? 2 + below(size - 1) : size;
    harness_.percentage = below(2) == 0 ? 0 : 100;
    harness_.SetCluster(nodes, pods, {PodGroup("g", min, by_rack ? kRack : "")});

    bool fits = false;
    if (!by_rack) {
      fits = FitsSomehow(rooms, members, static_cast<size_t>(min));
    } else {
      for (const char* rack : {"r0", "r1"}) {
        std::vector<Room> of_rack;
        for (const Room& room : rooms) {
          if (room.rack == rack) of_rack.push_back(room);
        }
        fits = fits || FitsSomehow(of_rack, members, static_cast<size_t>(min));
      }
    }
    const v1beta1::PlanResponse response = harness_.Plan(pods[0].uid(), 0, {}, true);
    ASSERT_TRUE((response.plan().has_group() || response.rejection().has_group()))
        << seed << "\n"
        << response.DebugString();
    const v1beta1::PlannedGroup& group =
        response.has_plan() ? response.plan().group() : response.rejection().group();
    EXPECT_EQ(group.needed(), min);
    // A plan leaves no state: the same call has the same answer.
    const v1beta1::PlanResponse again = harness_.Plan(pods[0].uid(), 0, {}, true);
    ASSERT_EQ(response.plan().placements_size(), again.plan().placements_size()) << seed;
    ++(fits ? tally->feasible : tally->infeasible);
    if (response.plan().placements().empty()) {
      const bool alone = absl::StrContains(response.rejection().pre_filter().rejection().reasons(0),
                                           "members fit, this one does not");
      EXPECT_EQ(response.rejection().group().max_schedulable() >= static_cast<uint32_t>(min), alone)
          << seed;
      EXPECT_EQ(response.rejection().pre_filter().rejection().plugin(), "AtomicReplicaCoordinator");
      EXPECT_EQ(response.rejection().pre_filter().rejection().code(),
                v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
      if (kinds == 1) {
        ASSERT_FALSE(fits) << "seed " << seed << ": " << response.DebugString();
      }
      return;
    }
    ASSERT_TRUE(fits) << "seed " << seed << ": " << response.DebugString();
    ++tally->placed;
    ASSERT_GE(response.plan().placements_size(), min) << seed;
    ASSERT_EQ(response.plan().placements(0).pod_uid(), pods[0].uid());
    std::set<std::string> seen, racks;
    for (int i = 0; i < response.plan().placements_size(); ++i) {
      const Place place = harness_.PlaceOf(response.plan().placements(i));
      ASSERT_EQ(place, harness_.PlaceOf(again.plan().placements(i))) << seed;
      ASSERT_TRUE(seen.insert(place.pod).second) << seed;
      size_t member = 0;
      ASSERT_TRUE(absl::SimpleAtoi(place.pod.substr(std::string("default/m").size()), &member));
      Room& room = rooms[response.plan().placements(i).slot()];
      room.cpu -= members[member].cpu;
      room.gpu -= members[member].gpu;
      room.pods -= 1;
      ASSERT_TRUE(room.cpu >= 0 && room.gpu >= 0 && room.pods >= 0) << seed;
      racks.insert(room.rack);
    }
    if (by_rack) {
      ASSERT_TRUE(racks.size() == 1 && !racks.contains("")) << seed;
    }
  }

  PlansHarness harness_{kPlugins};
};

TEST_F(GroupPlansTest, EqualMembersArePlacedWheneverTheyFit) {
  Tally tally;
  for (int seed = 0; seed < kCases && !HasFatalFailure(); ++seed)
    RunCase(static_cast<uint64_t>(seed), 1, &tally);
  std::cout << "equal members: " << tally.placed << " of " << tally.feasible
            << " groups that fit were placed, none of " << tally.infeasible << " others\n";
  EXPECT_EQ(tally.placed, tally.feasible);
  EXPECT_GT(tally.feasible, kCases / 10);
  EXPECT_GT(tally.infeasible, kCases / 10);
}

TEST_F(GroupPlansTest, DifferentMembersArePlacedAlmostWheneverTheyFit) {
  Tally tally;
  for (int seed = 0; seed < kCases && !HasFatalFailure(); ++seed)
    RunCase(static_cast<uint64_t>(seed), 2 + seed % 2, &tally);
  std::cout << "different members: " << tally.placed << " of " << tally.feasible
            << " groups that fit were placed, none of " << tally.infeasible << " others\n";
  EXPECT_GE(tally.placed, tally.feasible * 99 / 100);
  EXPECT_GT(tally.feasible, kCases / 10);
  EXPECT_GT(tally.infeasible, kCases / 10);
}

TEST_F(GroupPlansTest, TheTightestRackThatFitsIsTaken) {
  std::vector<v1beta1::Node> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(NodeOf(absl::StrCat("wide", i), {4, 8, 10, "r1"}));
  for (int i = 0; i < 3; ++i) nodes.push_back(NodeOf(absl::StrCat("tight", i), {4, 8, 10, "r2"}));
  for (int i = 0; i < 2; ++i) nodes.push_back(NodeOf(absl::StrCat("small", i), {4, 8, 10, "r3"}));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 3; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {4, 8}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 3, kRack)});
  const auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 3);
  for (const auto& placement : response.plan().placements())
    EXPECT_TRUE(absl::StartsWith(harness_.PlaceOf(placement).node, "tight"));
}

TEST_F(GroupPlansTest, TheScoresBehindEachMembersNodeAreExplained) {
  std::vector<v1beta1::Node> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back(NodeOf(absl::StrCat("n", i), {8 + i, 8, 10, ""}));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 3; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {4, 2}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 3, "")});
  const auto plain = harness_.Plan(pods[0].uid(), 0, {}, true);
  ASSERT_EQ(plain.plan().placements_size(), 3);
  for (const auto& placement : plain.plan().placements())
    EXPECT_FALSE(placement.has_scored() || placement.has_score()) << "without explain";

  harness_.SetCluster(nodes, pods, {PodGroup("g", 3, "")});
  harness_.explain = true;
  const auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 3);
  for (const auto& placement : response.plan().placements()) {
    EXPECT_EQ(placement.scored().slots_size(), 4);
    EXPECT_EQ(static_cast<uint32_t>(placement.scored().slots_size()), placement.feasible());
    EXPECT_EQ(harness_.BestScored(placement), harness_.PlaceOf(placement).node);
  }
  // Each counts for the next.
  EXPECT_NE(response.plan().placements(0).score().SerializeAsString(),
            response.plan().placements(1).score().SerializeAsString());
}

TEST_F(GroupPlansTest, WhatStandsInTheWayIsSaid) {
  std::vector<v1beta1::Node> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(NodeOf(absl::StrCat("a", i), {4, 8, 10, "r1"}));
  nodes.push_back(NodeOf("b", {4, 8, 10, "r2"}));
  nodes.push_back(NodeOf("cpu", {4, 0, 10, "r2"}));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 8; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 8}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 8, kRack)});
  const auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
  EXPECT_EQ(response.plan().placements_size(), 0);
  ASSERT_EQ(response.rejection().pre_filter().rejection().reasons_size(), 1);
  EXPECT_EQ(response.rejection().pre_filter().rejection().reasons(0),
            "gang \"g\": 3 of 8 members fit; largest rack with room: r1 (3); 3 Insufficient "
            "nvidia.com/gpu");
  EXPECT_EQ(response.rejection().group().max_schedulable(), 3);
  const auto& rejected_by = response.rejection().pre_filter().rejected_by();
  EXPECT_EQ(std::vector<std::string>(rejected_by.begin(), rejected_by.end()),
            (std::vector<std::string>{"AtomicReplicaCoordinator", "NodeResourcesFit"}));
}

TEST_F(GroupPlansTest, TheReasonIsWrittenToTheGroupsObject) {
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 2; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 8}, "g"));
  harness_.SetCluster({NodeOf("n", {4, 8, 10, "r1"})}, pods, {PodGroup("g", 2, "")});
  EXPECT_TRUE(harness_.Tick().empty());
  for (const v1beta1::Pod& pod : pods)
    EXPECT_EQ(harness_.Plan(pod.uid(), 0, {}, true).plan().placements_size(), 0);
  const std::vector<v1beta1::Effect> written = harness_.Tick();
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].plugin(), "AtomicReplicaCoordinator");
  EXPECT_TRUE(written[0].put_object().status());
  EXPECT_TRUE(absl::StrContains(
      written[0].put_object().json(),
      R"("message":"1 of 2 members fit; 1 Insufficient nvidia.com/gpu","reason":"Unschedulable")"))
      << written[0].put_object().json();
}

TEST_F(GroupPlansTest, NoPlaceIsLookedForWhereAllNodesTogetherHaveNotEnough) {
  v1beta1::ClusterObject group = PodGroup("g", 2, "");
  v1beta1::GenericObject& custom = *group.mutable_generic_object();
  custom.set_resource(std::string(sdk::GroupResource(sdk::GroupDialect::kSchedulerPlugins)));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 2; ++i) {
    pods.push_back(MemberPod(absl::StrCat("m", i), {1, 4}, ""));
    (*pods.back().mutable_labels())["scheduling.x-k8s.io/pod-group"] = "g";
  }
  for (const bool is_enough : {false, true}) {
    custom.set_json(absl::StrCat(R"({"spec": {"minMember": 2, "minResources": {"nvidia.com/gpu": )",
                                 is_enough ? 8 : 9, "}}}"));
    harness_.SetCluster({NodeOf("n", {4, 8, 10, "r1"})}, pods, {group});
    const auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
    EXPECT_EQ(response.plan().placements_size(), is_enough ? 2 : 0);
    if (is_enough) continue;
    EXPECT_EQ(response.rejection().pre_filter().rejection().reasons(0),
              "gang \"g\": 8 of 9 nvidia.com/gpu are free (minResources)");
    const auto& rejected_by = response.rejection().pre_filter().rejected_by();
    EXPECT_EQ(std::vector<std::string>(rejected_by.begin(), rejected_by.end()),
              (std::vector<std::string>{"AtomicReplicaCoordinator", "NodeResourcesFit"}))
        << "a pod that releases a GPU is noticed";
  }
}

// The second worker must not run beside the first, and both must run beside the launcher.
TEST_F(GroupPlansTest, MembersThatNeedEachOtherFindPlaces) {
  std::vector<v1beta1::Node> nodes;
  for (int i = 0; i < 4; ++i)
    nodes.push_back(NodeOf(absl::StrCat("n", i), {4, 8, 10, i < 2 ? "r1" : "r2"}));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 2; ++i) {
    v1beta1::Pod& pod = pods.emplace_back(MemberPod(absl::StrCat("worker", i), {1, 8}, "g"));
    auto* term = pod.mutable_affinity()
                     ->mutable_pod_affinity()
                     ->add_required_during_scheduling_ignored_during_execution();
    term->set_topology_key(kRack);
    (*term->mutable_label_selector()->mutable_match_labels())["role"] = "launcher";
  }
  v1beta1::Pod launcher = MemberPod("a-launcher", {1, 0}, "g");
  (*launcher.mutable_labels())["role"] = "launcher";
  pods.push_back(launcher);
  harness_.SetCluster(nodes, pods, {PodGroup("g", 3, "")});
  const auto response = harness_.Plan(launcher.uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 3) << response.DebugString();
  std::set<std::string> racks;
  for (const auto& placement : response.plan().placements())
    racks.insert(nodes[placement.slot()].labels().at(kRack));
  EXPECT_EQ(racks.size(), 1u);
}

TEST_F(GroupPlansTest, NominatedNodesAreForTheMembersAndBlockNoOtherMember) {
  const std::vector<v1beta1::Node> nodes = {NodeOf("n0", {8, 4, 10, ""}),
                                            NodeOf("n1", {8, 4, 10, ""})};
  const v1beta1::Pod a = MemberPod("a", {1, 2}, "g"), b = MemberPod("b", {1, 2}, "g");
  harness_.SetCluster(nodes, {a, b}, {PodGroup("g", 2, "")});
  harness_.Nominate(a.uid(), "n1");
  harness_.Nominate(b.uid(), "n0");
  auto response = harness_.Plan(b.uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 2) << response.DebugString();
  EXPECT_EQ(harness_.PlaceOf(response.plan().placements(0)).node, "n0");
  EXPECT_EQ(harness_.PlaceOf(response.plan().placements(1)).node, "n1");
  // The large one fits only on the node nominated for the small one, which fits elsewhere.
  const std::vector<v1beta1::Node> uneven = {NodeOf("n0", {8, 4, 10, ""}),
                                             NodeOf("n1", {8, 1, 10, ""})};
  const v1beta1::Pod large = MemberPod("large", {1, 4}, "h"),
                     small = MemberPod("small", {1, 1}, "h");
  harness_.SetCluster(uneven, {large, small}, {PodGroup("h", 2, "")});
  harness_.Nominate(small.uid(), "n0");
  for (const std::string& uid : {large.uid(), small.uid()}) {
    response = harness_.Plan(uid, 0, {}, true);
    ASSERT_EQ(response.plan().placements_size(), 2) << response.DebugString();
    for (const auto& placement : response.plan().placements()) {
      const Place place = harness_.PlaceOf(placement);
      EXPECT_EQ(place.node, place.pod == "default/large" ? "n0" : "n1");
    }
  }
}

TEST_F(GroupPlansTest, NominationsBeyondTheRoomDoNoHarm) {
  const std::vector<v1beta1::Node> nodes = {NodeOf("n0", {8, 4, 10, ""}),
                                            NodeOf("n1", {8, 2, 10, ""})};
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 4; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 2}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 3, "")});
  for (const v1beta1::Pod& pod : pods) harness_.Nominate(pod.uid(), "n0");
  const auto response = harness_.Plan(pods[3].uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 3) << response.DebugString();
}

TEST_F(GroupPlansTest, SurplusMembersDoNotTakeTheRoomThatWasMadeForOthers) {
  const std::vector<v1beta1::Node> nodes = {NodeOf("n0", {8, 4, 10, ""}),
                                            NodeOf("n1", {8, 4, 10, ""})};
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 4; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 4}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 2, "")});
  harness_.Nominate(pods[2].uid(), "n1");
  harness_.Nominate(pods[3].uid(), "n0");
  auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
  ASSERT_TRUE(response.has_rejection()) << response.DebugString();
  ASSERT_EQ(response.rejection().group().pod_uids_size(), 1) << response.DebugString();
  EXPECT_EQ(response.rejection().group().pod_uids(0), pods[1].uid());
  const auto answer = harness_.PostFilter();
  ASSERT_EQ(answer.rejection().status().reasons_size(), 1) << answer.DebugString();
  EXPECT_EQ(answer.rejection().status().reasons(0),
            "preemption: not eligible while nodes are nominated for other members of the group.");
  EXPECT_FALSE(answer.rejection().clear_nomination());
  response = harness_.Plan(pods[3].uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 2) << response.DebugString();
  EXPECT_EQ(harness_.PlaceOf(response.plan().placements(0)).node, "n0");
  EXPECT_EQ(response.plan().placements(1).pod_uid(), pods[2].uid());
  EXPECT_EQ(harness_.PlaceOf(response.plan().placements(1)).node, "n1");
}

TEST_F(GroupPlansTest, NominationsStayWhileVictimsLeave) {
  const std::vector<v1beta1::Node> nodes = {NodeOf("n0", {8, 4, 10, ""}),
                                            NodeOf("n1", {8, 4, 10, ""})};
  for (const char* preemptor : {"DefaultPreemption", "CostAwarePreemptor"}) {
    std::vector<std::string> plugins = kPlugins;
    plugins.back() = preemptor;
    PlansHarness harness{plugins};
    std::vector<v1beta1::Pod> pods;
    for (const char* name : {"a", "b"}) {
      pods.push_back(MemberPod(name, {1, 4}, "g"));
      pods.back().set_priority(10);
    }
    for (const char* name : {"v0", "v1"}) {
      v1beta1::Pod& victim =
          pods.emplace_back(PodBuilder(name).Requests({{"nvidia.com/gpu", "4"}}));
      victim.set_node_name(name[1] == '0' ? "n0" : "n1");
    }
    pods[3].set_deletion_unix_seconds(1'800'000'000);
    pods[3].set_preempted_by_scheduler(true);
    harness.SetCluster(nodes, pods, {PodGroup("g", 2, "")});
    harness.Nominate(pods[0].uid(), "n0");
    harness.Nominate(pods[1].uid(), "n1");
    ASSERT_TRUE(harness.Plan(pods[0].uid(), 0, {}, true).has_rejection());
    auto answer = harness.PostFilter();
    ASSERT_TRUE(answer.has_rejection()) << preemptor << answer.DebugString();
    EXPECT_FALSE(answer.rejection().clear_nomination()) << preemptor;
    // If preemption cannot help, the nominations of other pods stay.
    for (size_t i : {2u, 3u}) {
      pods[i].clear_deletion_unix_seconds();
      pods[i].clear_preempted_by_scheduler();
      pods[i].set_priority(10);
    }
    harness.SetCluster(nodes, pods, {PodGroup("g", 2, "")});
    harness.Nominate(pods[0].uid(), "n0");
    ASSERT_TRUE(harness.Plan(pods[0].uid(), 0, {}, true).has_rejection());
    answer = harness.PostFilter();
    EXPECT_TRUE(answer.has_rejection() && answer.rejection().clear_nomination()) << preemptor;
  }
}

TEST_F(GroupPlansTest, ARejectionIsAboutAllMembersOfOneKind) {
  const std::vector<v1beta1::Node> nodes = {NodeOf("n0", {8, 4, 10, ""})};
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 3; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 2}, "g"));
  pods.push_back(MemberPod("other", {2, 1}, "g"));
  harness_.SetCluster(nodes, pods, {PodGroup("g", 4, "")});
  for (int again = 0; again < 2; ++again) {  // The second time from the cache.
    const auto response = harness_.Plan(pods[1].uid(), 0, {}, true);
    ASSERT_TRUE(response.has_rejection()) << response.DebugString();
    ASSERT_EQ(response.rejection().group().pod_uids_size(), 2) << response.DebugString();
    EXPECT_EQ(response.rejection().group().pod_uids(0), pods[0].uid());
    EXPECT_EQ(response.rejection().group().pod_uids(1), pods[2].uid());
  }
  EXPECT_EQ(harness_.Plan(pods[3].uid(), 0, {}, true).rejection().group().pod_uids_size(), 0);
}

// A Volcano job: a master and a number of workers, some of which are needed.
std::vector<v1beta1::Pod> VolcanoPods(int workers, const Shape& shape) {
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i <= workers; ++i) {
    v1beta1::Pod& pod =
        pods.emplace_back(MemberPod(i == workers ? "z-master" : absl::StrCat("w", i), shape, ""));
    (*pod.mutable_annotations())["scheduling.k8s.io/group-name"] = "job";
    (*pod.mutable_annotations())["volcano.sh/task-spec"] = i == workers ? "master" : "worker";
  }
  return pods;
}

v1beta1::ClusterObject VolcanoGroup(int min, int workers) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& custom = *object.mutable_generic_object();
  custom.set_resource(std::string(sdk::GroupResource(sdk::GroupDialect::kVolcano)));
  custom.set_namespace_("default");
  custom.set_name("job");
  custom.set_uid("uid-job");
  custom.set_resource_version("1");
  custom.set_json(absl::StrCat(R"({"metadata": {"name": "job"}, "spec": {"minMember": )", min,
                               R"(, "minTaskMember": {"master": 1, "worker": )", workers, "}}}"));
  return object;
}

TEST_F(GroupPlansTest, EachPartOfAGroupGetsItsNumber) {
  // Room for four of six: the master is the last by name, and is required.
  std::vector<v1beta1::Pod> pods = VolcanoPods(5, {1, 2});
  harness_.SetCluster({NodeOf("n0", {8, 8, 10, ""})}, pods, {VolcanoGroup(4, 3)});
  for (const size_t asked : {0u, 4u, 5u}) {
    const auto response = harness_.Plan(pods[asked].uid(), 0, {}, true);
    ASSERT_EQ(response.plan().placements_size(), 4) << asked << response.DebugString();
    bool has_master = false;
    for (const auto& placement : response.plan().placements())
      has_master |= placement.pod_uid() == pods[5].uid();
    EXPECT_TRUE(has_master) << asked;
  }
  // The master fits nowhere: there is room for enough workers, but they are useless without it.
  (*pods[5].mutable_containers(0)->mutable_requests()->mutable_scalar())["nvidia.com/gpu"] = 9;
  harness_.SetCluster({NodeOf("n0", {8, 8, 10, ""})}, pods, {VolcanoGroup(4, 3)});
  const auto response = harness_.Plan(pods[0].uid(), 0, {}, true);
  ASSERT_TRUE(response.has_rejection()) << response.DebugString();
  EXPECT_TRUE(absl::StrContains(response.rejection().pre_filter().rejection().reasons(0),
                                "0 of 1 of master"))
      << response.rejection().pre_filter().rejection().reasons(0);
}

TEST_F(GroupPlansTest, RoomIsMadeForEachPartsNumber) {
  std::vector<v1beta1::Pod> pods = VolcanoPods(3, {1, 2});
  for (v1beta1::Pod& pod : pods) pod.set_priority(10);
  for (const char* name : {"v0", "v1", "v2"}) {
    pods.push_back(PodBuilder(name).Requests({{"nvidia.com/gpu", "2"}}));
    pods.back().set_node_name("n0");
  }
  harness_.SetCluster({NodeOf("n0", {8, 6, 10, ""})}, pods, {VolcanoGroup(2, 1)});
  ASSERT_TRUE(harness_.Plan(pods[1].uid(), 0, {}, true).has_rejection());
  const auto answer = harness_.PostFilter();
  ASSERT_EQ(answer.candidates().candidates_size(), 1) << answer.DebugString();
  EXPECT_EQ(answer.candidates().candidates(0).victim_uids_size(), 2);
  ASSERT_EQ(answer.candidates().candidates(0).nominations_size(), 1);
  EXPECT_EQ(answer.candidates().candidates(0).nominations(0).pod_uid(), pods[3].uid());
}

TEST_F(GroupPlansTest, ALaterMemberGoesToTheOthersRack) {
  std::vector<v1beta1::Node> nodes;
  for (int i = 0; i < 4; ++i)
    nodes.push_back(NodeOf(absl::StrCat("n", i), {4, 8, 10, i < 2 ? "r1" : "r2"}));
  std::vector<v1beta1::Pod> pods;
  for (int i = 0; i < 3; ++i) pods.push_back(MemberPod(absl::StrCat("m", i), {1, 4}, "g"));
  pods[0].set_node_name("n2");
  pods[1].set_node_name("n2");
  harness_.SetCluster(nodes, pods, {PodGroup("g", 2, kRack)});
  const auto response = harness_.Plan(pods[2].uid(), 0, {}, true);
  ASSERT_EQ(response.plan().placements_size(), 1) << response.DebugString();
  EXPECT_EQ(harness_.PlaceOf(response.plan().placements(0)).node, "n3");
}

// Equal members preempt pods of lower priority: whenever evicting all of them would be enough, with
// no more victims than needed, and none of equal priority.
TEST_F(GroupPlansTest, GroupsPreemptForAllMembersOrForNone) {
  int helped = 0, helpless = 0, victims_in_all = 0;
  for (int seed = 0; seed < kCases / 5 && !HasFatalFailure(); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    std::vector<Room> rooms;
    std::vector<v1beta1::Node> nodes;
    const int num_nodes = 1 + below(4);
    for (int i = 0; i < num_nodes; ++i) {
      rooms.push_back({4 + below(5), 8, 10, absl::StrCat("r", below(2))});
      nodes.push_back(NodeOf(absl::StrCat("n", i), rooms.back()));
    }
    std::vector<v1beta1::Pod> pods;
    struct Running {
      Shape shape;
      int priority;
      size_t node;
    };
    std::map<std::string, Running> running;
    for (int i = 0; i < 3 * num_nodes; ++i) {
      const Running pod{
          {1 + below(3), 0}, below(3) == 0 ? 10 : below(3), static_cast<size_t>(below(num_nodes))};
      if (rooms[pod.node].cpu < pod.shape.cpu) continue;
      rooms[pod.node].cpu -= pod.shape.cpu;
      PodBuilder builder(absl::StrCat("running-", i));
      builder.Requests({{"cpu", absl::StrCat(pod.shape.cpu)}}).Priority(pod.priority);
      builder.OnNode(nodes[pod.node].name());
      pods.push_back(builder);
      running[pods.back().uid()] = pod;
    }
    const int size = 2 + below(4);
    const std::vector<Shape> members(static_cast<size_t>(size), {1 + below(3), below(2)});
    std::vector<std::string> uids;
    for (int i = 0; i < size; ++i) {
      v1beta1::Pod pod = MemberPod(absl::StrCat("m", i), members[0], "g");
      pod.set_priority(10);
      uids.push_back(pod.uid());
      pods.push_back(pod);
    }
    const bool by_rack = below(2) == 0;
    const auto fits = [&](const std::vector<Room>& now) {
      const size_t needed = static_cast<size_t>(size);
      if (!by_rack) return FitsSomehow(now, members, needed);
      for (const char* rack : {"r0", "r1"}) {
        std::vector<Room> of_rack;
        for (const Room& room : now) {
          if (room.rack == rack) of_rack.push_back(room);
        }
        if (FitsSomehow(of_rack, members, needed)) return true;
      }
      return false;
    };
    if (fits(rooms)) continue;
    std::vector<Room> emptied = rooms;
    for (const auto& [uid, pod] : running) {
      if (pod.priority < 10) emptied[pod.node].cpu += pod.shape.cpu;
    }
    harness_.percentage = 100;
    harness_.SetCluster(nodes, pods, {PodGroup("g", size, by_rack ? kRack : "")});
    ASSERT_TRUE(harness_.Plan(uids[0], 0, {}, true).plan().placements().empty()) << seed;
    const v1beta1::PostFilterResponse answer = harness_.PostFilter();
    if (!fits(emptied)) {
      ++helpless;
      ASSERT_TRUE(answer.has_rejection()) << seed << "\n" << answer.DebugString();
      continue;
    }
    ++helped;
    ASSERT_EQ(answer.candidates().candidates_size(), 1) << seed << "\n" << answer.DebugString();
    const v1beta1::PreemptionCandidate& candidate = answer.candidates().candidates(0);
    ASSERT_EQ(candidate.nominations_size(), size - 1) << seed;
    std::vector<Room> after = rooms;
    std::set<size_t> used = {candidate.slot()};
    for (const auto& nomination : candidate.nominations()) used.insert(nomination.slot());
    for (const std::string& uid : candidate.victim_uids()) {
      ASSERT_TRUE(running.contains(uid) && running[uid].priority < 10) << seed;
      ASSERT_TRUE(used.contains(running[uid].node)) << seed;
      after[running[uid].node].cpu += running[uid].shape.cpu;
    }
    ASSERT_TRUE(fits(after)) << seed;
    std::vector<size_t> slots = {candidate.slot()};
    for (const auto& nomination : candidate.nominations()) slots.push_back(nomination.slot());
    std::vector<Room> left = after;
    for (const size_t slot : slots) {
      left[slot].cpu -= members[0].cpu;
      left[slot].gpu -= members[0].gpu;
    }
    for (const Room& room : left) ASSERT_TRUE(room.cpu >= 0 && room.gpu >= 0) << seed;
    // No victim could have stayed with the group on these nodes.
    for (const std::string& uid : candidate.victim_uids())
      ASSERT_LT(left[running[uid].node].cpu, running[uid].shape.cpu) << seed << ": " << uid;
    victims_in_all += candidate.victim_uids_size();
  }
  std::cout << helped << " groups were helped by " << victims_in_all << " victims, " << helpless
            << " could not be helped\n";
  EXPECT_GT(helped, kCases / 50);
  EXPECT_GT(helpless, kCases / 50);
}

// The same with victims in gangs.
TEST_F(GroupPlansTest, GangsLeaveForGroupsWholeOrNotAtAll) {
  std::vector<std::string> plugins = kPlugins;
  plugins.back() = "CostAwarePreemptor";
  PlansHarness harness(plugins);
  int helped = 0, gangs_left = 0, with_companions = 0;
  for (int seed = 0; seed < kCases / 20 && !HasFatalFailure(); ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    const int num_nodes = 2 + below(3);
    std::vector<Room> rooms;
    std::vector<v1beta1::Node> nodes;
    for (int i = 0; i < num_nodes; ++i) {
      rooms.push_back({8, 8, 20, "r0"});
      nodes.push_back(NodeOf(absl::StrCat("n", i), rooms.back()));
    }
    std::vector<v1beta1::Pod> pods;
    std::map<std::string, std::pair<size_t, std::string>> running;  // node, gang
    std::map<std::string, int> members_of;
    for (int i = 0; i < 8 * num_nodes; ++i) {
      const size_t node = static_cast<size_t>(below(num_nodes));
      if (rooms[node].cpu < 2) continue;
      rooms[node].cpu -= 2;
      PodBuilder pod(absl::StrCat("running-", i));
      pod.Requests({{"cpu", "2"}}).OnNode(nodes[node].name()).Label("workload-type", "inference");
      const std::string gang = below(2) == 0 ? "" : absl::StrCat("gang-", below(3));
      if (!gang.empty()) pod.Annotation("gang.scheduling.koordinator.sh/name", gang);
      pods.push_back(pod);
      running[pods.back().uid()] = {node, gang};
      ++members_of[gang];
    }
    for (v1beta1::Pod& pod : pods) {
      const std::string& gang = running[pod.uid()].second;
      if (!gang.empty()) {
        (*pod.mutable_annotations())["gang.scheduling.koordinator.sh/min-available"] =
            absl::StrCat(members_of[gang]);
      }
    }
    const int size = 2 + below(2);
    const Shape shape{3 + below(3), 0};
    std::vector<std::string> uids;
    for (int i = 0; i < size; ++i) {
      v1beta1::Pod pod = MemberPod(absl::StrCat("m", i), shape, "g");
      pod.set_priority(10);
      uids.push_back(pod.uid());
      pods.push_back(pod);
    }
    harness.SetCluster(nodes, pods, {PodGroup("g", size, "")});
    if (!harness.Plan(uids[0], 0, {}, true).plan().placements().empty()) continue;
    const v1beta1::PostFilterResponse answer = harness.PostFilter();
    if (answer.candidates().candidates().empty()) continue;
    ++helped;
    const v1beta1::PreemptionCandidate& candidate = answer.candidates().candidates(0);
    std::set<size_t> used = {candidate.slot()};
    for (const auto& nomination : candidate.nominations()) used.insert(nomination.slot());
    std::map<std::string, int> left;
    for (const auto* all : {&candidate.victim_uids(), &candidate.companion_uids()}) {
      for (const std::string& uid : *all) {
        ASSERT_TRUE(running.contains(uid)) << seed;
        ASSERT_EQ(used.contains(running[uid].first), all == &candidate.victim_uids()) << seed;
        rooms[running[uid].first].cpu += 2;
        ++left[running[uid].second];
      }
    }
    with_companions += candidate.companion_uids().empty() ? 0 : 1;
    for (const auto& [gang, count] : left) {
      if (gang.empty()) continue;
      ASSERT_EQ(count, members_of[gang]) << "seed " << seed << ": " << gang;
      ++gangs_left;
    }
    rooms[candidate.slot()].cpu -= shape.cpu;
    for (const auto& nomination : candidate.nominations())
      rooms[nomination.slot()].cpu -= shape.cpu;
    for (const Room& room : rooms) ASSERT_GE(room.cpu, 0) << seed;
  }
  std::cout << helped << " groups were helped; " << gangs_left << " gangs left, all as a whole; "
            << with_companions << " times with members on other nodes\n";
  EXPECT_GT(helped, kCases / 100);
  EXPECT_GT(gangs_left, 0);
  EXPECT_GT(with_companions, 0);
}

}  // namespace
}  // namespace outboard::plans::group_plans_test
