// The kit against hosts with plugins at the points of groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/conformance/kit.h"
#include "proto/testing/fake_host.h"

namespace outboard::conformance::group_cases_test {
namespace {

using namespace v1beta1;  // NOLINT: the contract's messages are this file's vocabulary.
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A correct host, in which every pod is in a group with one other, and every node has room. Tests
// change its answers.
class GroupsHost {
 public:
  GroupsHost()
      : host_(testing::FakeHost::Start(
            absl::StrCat("unix:", ::testing::TempDir(), "/groups-", getpid(), ".sock"))) {
    host_->Answer<GetHostInfoRequest, GetHostInfoResponse>(
        [](const GetHostInfoRequest&, GetHostInfoResponse* response) {
          // The fake host does not wait for versions.
          for (const Capability capability :
               {CAPABILITY_FUSED_CYCLE, CAPABILITY_GROUP_PLAN, CAPABILITY_GROUP_PLACEMENTS,
                CAPABILITY_ACKS_EVERY_VERSION})
            response->add_capabilities(capability);
          PluginInfo* plugin = response->add_plugins();
          plugin->set_name("Fake");
          for (const ExtensionPoint point :
               {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_PLACEMENT_GENERATE,
                EXTENSION_POINT_PLACEMENT_SCORE, EXTENSION_POINT_POD_GROUP_POST_FILTER})
            plugin->add_extension_points(point);
          return grpc::Status::OK;
        });
    host_->Answer<GeneratePlacementsRequest, GeneratePlacementsResponse>(
        [this](const GeneratePlacementsRequest& request, GeneratePlacementsResponse* response) {
          const grpc::Status known = CheckKnown(request.header(), request.group());
          if (!known.ok()) return known;
          for (const uint32_t slot : {0u, 1u}) {
            GroupPlacement* placement = response->mutable_placements()->add_placements();
            placement->set_name(absl::StrCat("node-", slot));
            placement->mutable_nodes()->add_slots(slot);
          }
          if (on_generate) on_generate(response);
          return grpc::Status::OK;
        });
    host_->Answer<ScorePlacementsRequest, ScorePlacementsResponse>(
        [this](const ScorePlacementsRequest& request, ScorePlacementsResponse* response) {
          grpc::Status known = CheckKnown(request.header(), request.group());
          for (const PlacementCandidate& candidate : request.placements()) {
            if (known.ok()) known = CheckNodes(candidate.placement().nodes());
          }
          if (!known.ok()) return known;
          PlacementScores* scores = response->add_plugins();
          scores->set_plugin("Fake");
          scores->set_scores(std::string(static_cast<size_t>(request.placements_size()), '\x07'));
          if (on_score) on_score(response);
          return grpc::Status::OK;
        });
    host_->Answer<PlanRequest, PlanResponse>(
        [this](const PlanRequest& request, PlanResponse* response) {
          return Plan(request, response);
        });
    host_->Answer<PreFilterRequest, PreFilterResponse>(
        [](const PreFilterRequest&, PreFilterResponse*) { return grpc::Status::OK; });
    host_->Answer<PostFilterRequest, PostFilterResponse>(
        [this](const PostFilterRequest& request, PostFilterResponse* response) {
          return PostFilter(request, response);
        });
  }

  // SERVICE/CASE of the failures among the cases about groups.
  std::vector<std::string> Failures() const {
    Options options;
    options.endpoint.host = "host";
    options.endpoint.address = host_->address();
    const auto kit = Kit::Connect(options);
    EXPECT_TRUE(kit.ok()) << kit.status();
    if (!kit.ok()) return {"Connect"};
    std::vector<std::string> failures;
    std::vector<Case> cases = GroupCases();
    cases.push_back(PostFilterCases().back());
    for (const Result& result : RunCases(**kit, cases, [](const Result&) {})) {
      if (result.outcome == Result::Outcome::kFailed)
        failures.push_back(absl::StrCat(result.service, "/", result.name));
      messages_ += absl::StrCat(result.service, "/", result.name, ": ", result.what, "\n");
    }
    return failures;
  }
  const std::string& messages() const { return messages_; }

  std::function<void(GeneratePlacementsResponse*)> on_generate;
  std::function<void(ScorePlacementsResponse*)> on_score;
  std::function<void(const PlanRequest&, PlanResponse*)> on_plan;
  std::function<void(PreemptionCandidate*)> on_post_filter;
  bool checks_objects = true;

 private:
  grpc::Status CheckKnown(const CallHeader& header, const PendingGroup& group) const {
    if (!checks_objects) return grpc::Status::OK;
    if (header.session_id() == "unknown")
      return testing::CallFailure(CallError::REASON_SESSION_UNKNOWN, "unknown session");
    const auto pods = host_->pods();
    for (const std::string& uid : group.pod_uids()) {
      if (pods.count(uid) == 0)
        return testing::CallFailure(CallError::REASON_OBJECT_UNKNOWN, "unknown pod");
    }
    return grpc::Status::OK;
  }
  grpc::Status CheckNodes(const NodeSet& set) const {
    const auto nodes = host_->nodes();
    for (const uint32_t slot : set.slots()) {
      if (checks_objects && nodes.count(slot) == 0)
        return testing::CallFailure(CallError::REASON_OBJECT_UNKNOWN, "unknown node");
    }
    return grpc::Status::OK;
  }

  PendingGroup GroupOf(const std::string& uid) const {
    PendingGroup group;
    group.set_name("fake default/pair");
    group.set_namespace_("default");
    group.add_pod_uids(uid);
    for (const auto& [other, pod] : host_->pods()) {
      if (other == uid || !pod.node_name().empty() || pod.scheduler_name() != "conformance")
        continue;
      group.add_pod_uids(other);
      break;
    }
    group.set_needed(static_cast<uint32_t>(group.pod_uids_size()));
    return group;
  }

  grpc::Status Plan(const PlanRequest& request, PlanResponse* response) const {
    response->set_attempt_id(request.cycle().header().attempt_id());
    const GroupStep& step = request.group_step();
    const PendingGroup group = GroupOf(request.cycle().pod_uid());
    for (const GroupNodeSets* sets : {&step.try_placements(), &step.place_on()}) {
      for (const NodeSet& set : sets->placements()) {
        if (const grpc::Status known = CheckNodes(set); !known.ok()) return known;
      }
    }
    if (step.has_place_on()) {
      response->mutable_plan()->mutable_pre_filter();
      response->mutable_plan()->mutable_group()->set_name(group.name());
      for (const std::string& uid : group.pod_uids()) {
        PlannedPlacement* placement = response->mutable_plan()->add_placements();
        placement->set_pod_uid(uid);
        placement->set_slot(step.place_on().placements(0).slots(0));
        placement->set_processed(1);
        placement->set_feasible(1);
      }
    } else {
      response->mutable_group()->mutable_pre_filter();
      *response->mutable_group()->mutable_group() = group;
      for (const NodeSet& set : step.try_placements().placements()) {
        GroupAssignments* fits = response->mutable_group()->add_tried()->mutable_assignments();
        for (int i = 0; i < group.pod_uids_size(); ++i) {
          fits->add_pods(static_cast<uint32_t>(i));
          fits->add_slots(set.slots(0));
        }
      }
    }
    if (on_plan) on_plan(request, response);
    return grpc::Status::OK;
  }

  // Evicts the least important pod, and nominates its node for all of the group.
  grpc::Status PostFilter(const PostFilterRequest& request, PostFilterResponse* response) const {
    const grpc::Status known = CheckKnown(request.header(), request.group());
    if (!known.ok()) return known;
    const auto pods = host_->pods();
    const Pod* victim = nullptr;
    for (const auto& [uid, pod] : pods) {
      if (!pod.node_name().empty() && (victim == nullptr || pod.priority() < victim->priority()))
        victim = &pod;
    }
    for (const auto& [slot, node] : host_->nodes()) {
      if (victim == nullptr || node.name() != victim->node_name()) continue;
      PreemptionCandidate* candidate = response->mutable_candidates()->add_candidates();
      candidate->set_plugin("Fake");
      candidate->set_slot(slot);
      candidate->add_victim_uids(victim->uid());
      for (int i = 1; i < request.group().pod_uids_size(); ++i) {
        Nomination* nomination = candidate->add_nominations();
        nomination->set_pod_uid(request.group().pod_uids(i));
        nomination->set_slot(slot);
      }
      if (on_post_filter) on_post_filter(candidate);
    }
    return grpc::Status::OK;
  }

  std::unique_ptr<testing::FakeHost> host_;
  mutable std::string messages_;
};

TEST(GroupCasesTest, FindNothingInAGoodHost) {
  GroupsHost host;
  EXPECT_THAT(host.Failures(), IsEmpty()) << host.messages();
}

TEST(GroupCasesTest, FindNothingInAHostWithoutAnOpinion) {
  GroupsHost host;
  host.on_generate = [](auto* response) { response->mutable_any(); };
  EXPECT_THAT(host.Failures(), IsEmpty()) << host.messages();
}

TEST(GroupCasesTest, FindPlacementsOfUnknownNodes) {
  GroupsHost host;
  host.on_generate = [](auto* response) {
    response->mutable_placements()->mutable_placements(0)->mutable_nodes()->add_slots(1000);
  };
  EXPECT_THAT(host.Failures(), ElementsAre("GroupService/well-formed")) << host.messages();
}

TEST(GroupCasesTest, FindTwoPlacementsOfOneName) {
  GroupsHost host;
  host.on_generate = [](auto* response) {
    response->mutable_placements()->mutable_placements(0)->set_name("node-1");
  };
  EXPECT_THAT(host.Failures(), ElementsAre("GroupService/well-formed")) << host.messages();
}

TEST(GroupCasesTest, FindScoresBeyondAHundred) {
  GroupsHost host;
  host.on_score = [](auto* response) {
    (*response->mutable_plugins(0)->mutable_scores())[0] = '\x65';
  };
  EXPECT_THAT(host.Failures(), ElementsAre("GroupService/well-formed")) << host.messages();
}

TEST(GroupCasesTest, FindScoresThatChange) {
  GroupsHost host;
  int calls = 0;
  host.on_score = [&](auto* response) {
    (*response->mutable_plugins(0)->mutable_scores())[0] = static_cast<char>(++calls % 100);
  };
  EXPECT_THAT(host.Failures(), ElementsAre("GroupService/again")) << host.messages();
}

TEST(GroupCasesTest, FindAHostThatLooksUpNothing) {
  GroupsHost host;
  host.checks_objects = false;
  EXPECT_THAT(host.Failures(),
              UnorderedElementsAre("GroupService/errors", "PlanService/group-step-errors"))
      << host.messages();
}

TEST(GroupCasesTest, FindNodesOutsideOfThePlacement) {
  GroupsHost host;
  host.on_plan = [](const PlanRequest& request, PlanResponse* response) {
    if (request.group_step().has_place_on())
      response->mutable_plan()->mutable_placements(0)->set_slot(
          request.group_step().place_on().placements(1).slots(0));
  };
  EXPECT_THAT(host.Failures(), ElementsAre("PlanService/group-steps")) << host.messages();
}

TEST(GroupCasesTest, FindAHostThatPlacesTheGroupAtOnce) {
  GroupsHost host;
  host.on_plan = [](const PlanRequest& request, PlanResponse* response) {
    if (!request.group_step().has_describe()) return;
    response->mutable_plan()->mutable_pre_filter();
  };
  EXPECT_THAT(host.Failures(), ElementsAre("PlanService/group-steps")) << host.messages();
}

TEST(GroupCasesTest, FindATrialWithoutThePod) {
  GroupsHost host;
  host.on_plan = [](const PlanRequest&, PlanResponse* response) {
    if (!response->has_group()) return;
    for (TriedPlacement& tried : *response->mutable_group()->mutable_tried())
      tried.mutable_assignments()->set_pods(0, 7);
  };
  EXPECT_THAT(host.Failures(), ElementsAre("PlanService/group-steps")) << host.messages();
}

const char kGroupPostFilter[] = "PostFilterService/group-post-filter";

TEST(GroupCasesTest, FindAPodNominatedTwice) {
  GroupsHost host;
  host.on_post_filter = [](PreemptionCandidate* candidate) {
    candidate->mutable_nominations(1)->set_pod_uid(candidate->nominations(0).pod_uid());
  };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

TEST(GroupCasesTest, FindANominationForAStranger) {
  GroupsHost host;
  host.on_post_filter = [](PreemptionCandidate* candidate) {
    candidate->mutable_nominations(0)->set_pod_uid(candidate->victim_uids(0));
  };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

TEST(GroupCasesTest, FindAnUnknownNodeNominated) {
  GroupsHost host;
  host.on_post_filter = [](PreemptionCandidate* candidate) {
    candidate->mutable_nominations(0)->set_slot(1000);
  };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

TEST(GroupCasesTest, FindACandidateOfAnotherPlugin) {
  GroupsHost host;
  host.on_post_filter = [](PreemptionCandidate* candidate) { candidate->set_plugin("Other"); };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

TEST(GroupCasesTest, FindAVictimOnAnotherNode) {
  GroupsHost host;
  host.on_post_filter = [](PreemptionCandidate* candidate) {
    candidate->set_slot(candidate->slot() == 0 ? 1 : 0);
    candidate->clear_nominations();
  };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

TEST(GroupCasesTest, FindPreemptionThatChangesItsMind) {
  GroupsHost host;
  uint32_t calls = 0;
  host.on_post_filter = [&](PreemptionCandidate* candidate) {
    candidate->set_budget_violations(++calls);
  };
  EXPECT_THAT(host.Failures(), ElementsAre(kGroupPostFilter)) << host.messages();
}

}  // namespace
}  // namespace outboard::conformance::group_cases_test
