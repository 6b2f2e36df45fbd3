#include "shim/framework/group_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::framework::group_check_test {
namespace {

using ::testing::HasSubstr;

// Three nodes in slots 0 to 2, and pods a, b and c that wait for a node.
class GroupCheckTest : public ::testing::Test {
 protected:
  GroupCheckTest() {
    for (int i = 0; i < 3; ++i) {
      auto node = std::make_shared<kube::NodeObject>();
      node->node.set_uid(absl::StrCat("uid-n", i));
      node->node.set_name(absl::StrCat("n", i));
      node->resource_version = absl::StrCat(i + 1);
      cluster_.UpsertNode(node);
    }
    for (const char* name : {"a", "b", "c"}) cluster_.UpsertPod(MakePod(name));
    pod_ = cluster_.FindPod("uid-a");
    group_.set_name("gang ns/job");
    group_.set_namespace_("ns");
    group_.set_needed(2);
    for (const char* uid : {"uid-a", "uid-b", "uid-c"}) group_.add_pod_uids(uid);
    sets_.add_placements()->add_slots(0);
    sets_.mutable_placements(0)->add_slots(1);
    sets_.add_placements()->add_slots(2);
  }
  static std::shared_ptr<kube::PodObject> MakePod(const std::string& name) {
    auto pod = std::make_shared<kube::PodObject>();
    pod->pod.set_uid(absl::StrCat("uid-", name));
    pod->pod.set_namespace_("ns");
    pod->pod.set_name(name);
    pod->pod.set_scheduler_name("p");
    pod->resource_version = "9";
    return pod;
  }

  std::string FaultOfGroup(const std::function<void(v1beta1::PendingGroup*)>& change) {
    v1beta1::PendingGroup group = group_;
    change(&group);
    return std::string(CheckPendingGroup(group, *pod_, cluster_).message());
  }
  std::string FaultOfPlacements(
      const std::function<void(v1beta1::GeneratePlacementsResponse*)>& change) {
    v1beta1::GeneratePlacementsResponse answer;
    for (int i = 0; i < 2; ++i) {
      v1beta1::GroupPlacement* placement = answer.mutable_placements()->add_placements();
      placement->set_name(absl::StrCat("rack-", i));
      *placement->mutable_nodes() = sets_.placements(i);
    }
    change(&answer);
    return std::string(CheckGeneratedPlacements(answer, "Racks", cluster_).message());
  }
  std::string FaultOfTrial(const std::function<void(v1beta1::GroupTrial*)>& change) {
    v1beta1::GroupTrial trial;
    *trial.mutable_group() = group_;
    v1beta1::GroupAssignments* fits = trial.add_tried()->mutable_assignments();
    for (const uint32_t i : {0u, 2u}) {
      fits->add_pods(i);
      fits->add_slots(1);
    }
    trial.add_tried()->mutable_misfit()->set_reason("1 of 2 members fit");
    change(&trial);
    return std::string(CheckTriedPlacements(trial, group_, sets_).message());
  }
  std::string FaultOfScores(const std::function<void(v1beta1::ScorePlacementsResponse*)>& change) {
    v1beta1::ScorePlacementsResponse answer;
    for (const char* name : {"Tight", "Cheap"}) {
      v1beta1::PlacementScores* scores = answer.add_plugins();
      scores->set_plugin(name);
      scores->set_scores(std::string("\x00\x64", 2));
    }
    change(&answer);
    return std::string(CheckPlacementScores(answer, {"Tight", "Cheap"}, 2).message());
  }
  std::string FaultOfPlan(const std::function<void(v1beta1::CyclePlan*)>& change) {
    v1beta1::CyclePlan plan;
    plan.mutable_group()->set_name(group_.name());
    for (const char* uid : {"uid-a", "uid-c"}) {
      v1beta1::PlannedPlacement* placement = plan.add_placements();
      placement->set_pod_uid(uid);
      placement->set_slot(1);
    }
    change(&plan);
    return std::string(CheckPlacedOn(plan, group_, sets_).message());
  }

  cache::ClusterState cluster_;
  kube::PodPtr pod_;
  v1beta1::PendingGroup group_;
  v1beta1::GroupNodeSets sets_;
};

TEST_F(GroupCheckTest, AGroupIsOfPodsThatWait) {
  EXPECT_EQ(FaultOfGroup([](auto*) {}), "");
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->clear_name(); }), HasSubstr("is empty"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_name(std::string(1025, 'x')); }),
              HasSubstr("has 1025 bytes"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_namespace_("other"); }),
              HasSubstr("of namespace other"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->clear_pod_uids(); }), HasSubstr("does not begin with"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->mutable_pod_uids()->SwapElements(0, 1); }),
              HasSubstr("does not begin with pod ns/a"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_needed(0); }), HasSubstr("needs 0 of 3"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_needed(4); }), HasSubstr("needs 4 of 3"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_pod_uids(2, "uid-b"); }), HasSubstr("uid-b twice"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->set_pod_uids(2, "uid-x"); }),
              HasSubstr("does not wait for a node"));
  EXPECT_THAT(FaultOfGroup([](auto* g) { g->add_placed_slots(3); }), HasSubstr("slot 3"));
  auto bound = MakePod("c");
  bound->pod.set_node_name("n1");
  bound->resource_version = "10";
  cluster_.UpsertPod(bound);
  EXPECT_THAT(FaultOfGroup([](auto*) {}), HasSubstr("uid-c, which does not wait"));
}

TEST_F(GroupCheckTest, PlacementsAreNodesOfTheCluster) {
  EXPECT_EQ(FaultOfPlacements([](auto*) {}), "");
  EXPECT_EQ(FaultOfPlacements([](auto* a) { a->mutable_any(); }), "");
  EXPECT_THAT(FaultOfPlacements([](auto* a) { a->Clear(); }), HasSubstr("answers nothing"));
  EXPECT_THAT(FaultOfPlacements([](auto* a) { a->mutable_placements()->Clear(); }),
              HasSubstr("names 0 placements"));
  const auto first = [](auto* a) { return a->mutable_placements()->mutable_placements(0); };
  EXPECT_THAT(FaultOfPlacements([&](auto* a) { first(a)->clear_name(); }),
              HasSubstr("has a name of 0 bytes"));
  EXPECT_THAT(FaultOfPlacements([&](auto* a) { first(a)->set_name("rack-1"); }),
              HasSubstr("\"rack-1\" twice"));
  EXPECT_THAT(FaultOfPlacements([&](auto* a) { first(a)->clear_nodes(); }), HasSubstr("no node"));
  EXPECT_THAT(FaultOfPlacements([&](auto* a) { first(a)->mutable_nodes()->add_slots(7); }),
              HasSubstr("names slot 7, which has no node"));
  EXPECT_THAT(FaultOfPlacements([&](auto* a) { first(a)->mutable_nodes()->add_slots(0); }),
              HasSubstr("names slot 0 twice"));
  EXPECT_THAT(FaultOfPlacements([&](auto* a) {
                while (a->placements().placements_size() <= 256) {
                  auto* more = a->mutable_placements()->add_placements();
                  more->set_name(absl::StrCat("x-", a->placements().placements_size()));
                  more->mutable_nodes()->add_slots(0);
                }
              }),
              HasSubstr("names 257 placements"));
}

TEST_F(GroupCheckTest, ARejectionIsThePlugins) {
  const auto reject = [](const std::string& plugin, v1beta1::Code code) {
    return [=](v1beta1::GeneratePlacementsResponse* a) {
      a->mutable_rejection()->set_plugin(plugin);
      a->mutable_rejection()->set_code(code);
    };
  };
  EXPECT_EQ(FaultOfPlacements(reject("Racks", v1beta1::CODE_PENDING)), "");
  EXPECT_EQ(FaultOfPlacements(reject("Racks", v1beta1::CODE_ERROR)), "");
  EXPECT_THAT(FaultOfPlacements(reject("Racks", v1beta1::CODE_SUCCESS)),
              HasSubstr("rejects with code SUCCESS"));
  EXPECT_THAT(FaultOfPlacements(reject("Rows", v1beta1::CODE_UNSCHEDULABLE)),
              HasSubstr("answers for \"Rows\""));
}

TEST_F(GroupCheckTest, TriedPlacementsAreThoseOfTheRequest) {
  EXPECT_EQ(FaultOfTrial([](auto*) {}), "");
  const auto fit = [](auto* t) { return t->mutable_tried(0)->mutable_assignments(); };
  EXPECT_THAT(FaultOfTrial([](auto* t) { t->mutable_tried()->RemoveLast(); }),
              HasSubstr("tried 1 of 2 placements"));
  EXPECT_THAT(FaultOfTrial([](auto* t) { t->mutable_group()->set_needed(1); }),
              HasSubstr("another group"));
  EXPECT_THAT(FaultOfTrial([](auto* t) { t->mutable_group()->mutable_pod_uids()->RemoveLast(); }),
              HasSubstr("another group"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) { fit(t)->add_pods(1); }), HasSubstr("2 nodes to 3 pods"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) { fit(t)->set_slots(0, 2); }),
              HasSubstr("slot 2, which is not in the placement"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) { fit(t)->set_pods(1, 3); }), HasSubstr("pod 3 of 3"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) { fit(t)->set_pods(1, 0); }),
              HasSubstr("two nodes to pod"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) { fit(t)->set_pods(0, 1); }),
              HasSubstr("no node to the attempt's pod"));
  EXPECT_THAT(FaultOfTrial([&](auto* t) {
                fit(t)->mutable_pods()->RemoveLast();
                fit(t)->mutable_slots()->RemoveLast();
              }),
              HasSubstr("1 of 2 needed pods"));
  EXPECT_THAT(FaultOfTrial([](auto* t) { t->mutable_tried(1)->Clear(); }),
              HasSubstr("answers nothing about a placement"));
  EXPECT_THAT(FaultOfTrial([](auto* t) { *t->mutable_tried(0) = t->tried(1); }),
              HasSubstr("neither fits nor rejects"));
}

TEST_F(GroupCheckTest, ScoresCoverAllPlacements) {
  EXPECT_EQ(FaultOfScores([](auto*) {}), "");
  const auto second = [](auto* a) { return a->mutable_plugins(1); };
  EXPECT_THAT(FaultOfScores([](auto* a) { a->mutable_plugins()->RemoveLast(); }),
              HasSubstr("1 of 2 plugins"));
  EXPECT_THAT(FaultOfScores([](auto* a) { a->mutable_plugins()->SwapElements(0, 1); }),
              HasSubstr("\"Cheap\" in place of Tight"));
  EXPECT_THAT(FaultOfScores([&](auto* a) { second(a)->set_scores("x"); }),
              HasSubstr("Cheap scored 1 of 2 placements"));
  EXPECT_THAT(FaultOfScores([&](auto* a) { second(a)->set_scores(std::string("\x65\x00", 2)); }),
              HasSubstr("a score of 101"));
  const auto exclude = [&](uint32_t placement, const std::string& reason) {
    return [=](v1beta1::ScorePlacementsResponse* a) {
      a->mutable_plugins(1)->set_scores(std::string("\x65\x00", 2));
      v1beta1::ExcludedPlacement* excluded = a->mutable_plugins(1)->add_excluded();
      excluded->set_placement(placement);
      excluded->set_reason(reason);
    };
  };
  EXPECT_EQ(FaultOfScores(exclude(0, "too hot")), "");
  EXPECT_THAT(FaultOfScores(exclude(0, "")), HasSubstr("is empty"));
  EXPECT_THAT(FaultOfScores(exclude(2, "too hot")), HasSubstr("excludes placement 2 of 2"));
  EXPECT_THAT(FaultOfScores([&](auto* a) {
                exclude(0, "too hot")(a);
                exclude(0, "too hot")(a);
              }),
              HasSubstr("excludes placement 0 twice"));
  EXPECT_THAT(FaultOfScores([](auto* a) { a->mutable_error()->set_plugin("Other"); }),
              HasSubstr("answers for \"Other\""));
}

TEST_F(GroupCheckTest, APlanStaysWithinItsPlacement) {
  EXPECT_EQ(FaultOfPlan([](auto*) {}), "");
  EXPECT_THAT(FaultOfPlan([](auto* p) { p->clear_group(); }), HasSubstr("places no group"));
  EXPECT_THAT(FaultOfPlan([](auto* p) { p->set_node_set(2); }), HasSubstr("placement 2 of 2"));
  EXPECT_THAT(FaultOfPlan([](auto* p) { p->set_node_set(1); }), HasSubstr("slot 1, which is not"));
  EXPECT_THAT(FaultOfPlan([](auto* p) { p->mutable_placements()->RemoveLast(); }),
              HasSubstr("1 of 2 needed pods"));
  EXPECT_THAT(FaultOfPlan([](auto* p) { p->mutable_placements(1)->set_pod_uid("uid-x"); }),
              HasSubstr("uid-x, which is not in the group"));
}

}  // namespace
}  // namespace outboard::framework::group_check_test
