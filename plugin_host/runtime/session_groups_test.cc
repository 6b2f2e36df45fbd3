// The steps of a group's plan, and the plugins at the points of groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/runtime/session.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime::session_groups_test {
namespace {

using sdk::Verdict;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::CallError;

// What the plugin answers, and what it saw.
struct Script {
  std::function<Verdict(const sdk::PendingGroup&, std::vector<sdk::GroupPlacement>*)> generate;
  std::function<Verdict(absl::Span<const sdk::PlacementCandidate>, absl::Span<sdk::PlacementScore>)>
      score;
};

// Pods a and b are a group; a node takes one pod. Evicts pod `running` for a group.
class Pairs : public sdk::Plugin,
              public sdk::PreFilterPlugin,
              public sdk::NodeFilterPlugin,
              public sdk::GroupPlugin,
              public sdk::PlacementGeneratePlugin,
              public sdk::PlacementScorePlugin,
              public sdk::GroupPostFilterPlugin {
 public:
  explicit Pairs(const Script* script) : script_(*script) {}
  // Only plugins at PreFilter place groups.
  Verdict PreFilter(const sdk::Attempt&, sdk::PreFilterResult*) const override {
    return Verdict::Success();
  }
  Verdict FilterNode(const sdk::Attempt&, const sdk::NodeView& node) const override {
    return node.pods().empty() ? Verdict::Success() : Verdict::Unschedulable("taken");
  }
  std::optional<sdk::GroupToPlace> Group(const sdk::Attempt& attempt) const override {
    if (attempt.pod().name() == "c") return std::nullopt;
    sdk::GroupToPlace group;
    group.name = "pair";
    for (const char* uid : {"default/a", "default/b"})
      group.pending.push_back(attempt.cluster().FindPod(uid));
    group.needed = 2;
    return group;
  }
  Verdict GeneratePlacements(const sdk::Attempt&, const sdk::PendingGroup& group,
                             std::vector<sdk::GroupPlacement>* placements) const override {
    return script_.generate(group, placements);
  }
  Verdict ScorePlacements(const sdk::Attempt&, const sdk::PendingGroup&,
                          absl::Span<const sdk::PlacementCandidate> candidates,
                          absl::Span<sdk::PlacementScore> scores) const override {
    return script_.score(candidates, scores);
  }
  Verdict PostFilterGroup(const sdk::Attempt& attempt, const sdk::GroupToPlace&,
                          sdk::GroupDryRun& dry_run,
                          sdk::GroupPreemption* preemption) const override {
    const sdk::PodRecord* const victim = attempt.cluster().FindPod("default/running");
    dry_run.Remove(*victim);
    preemption->places = dry_run.Place({});
    preemption->victims = {victim};
    return preemption->places.empty() ? Verdict::Unschedulable("does not help")
                                      : Verdict::Success();
  }

 private:
  const Script& script_;
};

// Four nodes in slots 0 to 3, of which n0 has pod `running`; pods a, b and c wait.
class SessionGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sdk::PluginDescriptor descriptor;
    descriptor.name = "Pairs";
    descriptor.extension_points = {
        v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_FILTER,
        v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE, v1beta1::EXTENSION_POINT_PLACEMENT_SCORE,
        v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER};
    descriptor.create =
        [this](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return std::make_unique<Pairs>(&script_);
    };
    const std::vector<v1beta1::ExtensionPoint> points = descriptor.extension_points;
    ASSERT_TRUE(registry_.Add(std::move(descriptor)).ok());
    session_ = std::make_unique<Session>("s", &registry_);
    v1beta1::ConfigureRequest config;
    v1beta1::ProfileConfig* profile = config.add_profiles();
    profile->set_name("p");
    for (const v1beta1::ExtensionPoint point : points) {
      v1beta1::PointConfig* out = profile->add_points();
      out->set_extension_point(point);
      out->add_plugins("Pairs");
    }
    v1beta1::ConfigureResponse response;
    session_->Configure(config, &response);
    ASSERT_TRUE(response.problems().empty()) << response.DebugString();
    SendCluster();
  }
  void SendCluster() {
    session_->BeginSync();
    v1beta1::SyncRequest request;
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_BEGIN);
    for (uint32_t slot = 0; slot < 4; ++slot) {
      auto* upsert = request.add_changes()->mutable_node_upsert();
      upsert->set_slot(slot);
      *upsert->mutable_node() = NodeBuilder(absl::StrCat("n", slot)).Build();
      request.mutable_node_order()->add_slots(slot);
    }
    for (const char* name : {"a", "b", "c", "running"}) {
      v1beta1::Pod pod = PodBuilder(name).Build();
      if (pod.name() == "running") pod.set_node_name("n0");
      *request.add_changes()->mutable_pod_upsert()->mutable_pod() = std::move(pod);
    }
    ASSERT_TRUE(session_->Apply(request, now_).ok());
    request.Clear();
    request.set_version(1);
    request.set_phase(v1beta1::SyncRequest::PHASE_SNAPSHOT_END);
    ASSERT_TRUE(session_->Apply(request, now_).ok());
  }

  CallStatus Take(const v1beta1::GroupStep& step, v1beta1::PlanResponse* response,
                  const std::string& pod = "default/b") {
    v1beta1::PlanRequest request;
    request.mutable_cycle()->mutable_header()->set_attempt_id(1000);
    request.mutable_cycle()->mutable_header()->set_profile("p");
    request.mutable_cycle()->set_deadline_micros(60'000'000);
    request.mutable_cycle()->set_pod_uid(pod);
    request.set_place_group(true);
    *request.mutable_group_step() = step;
    return session_->Plan(request, now_, response);
  }
  static v1beta1::GroupNodeSets Sets(const std::vector<std::vector<uint32_t>>& sets) {
    v1beta1::GroupNodeSets out;
    for (const std::vector<uint32_t>& slots : sets)
      out.add_placements()->mutable_slots()->Add(slots.begin(), slots.end());
    return out;
  }
  v1beta1::PlanResponse Try(const std::vector<std::vector<uint32_t>>& sets) {
    v1beta1::GroupStep step;
    *step.mutable_try_placements() = Sets(sets);
    v1beta1::PlanResponse response;
    const CallStatus status = Take(step, &response);
    EXPECT_TRUE(status.ok()) << status.message();
    return response;
  }
  v1beta1::PlanResponse PlaceOn(const std::vector<std::vector<uint32_t>>& sets) {
    v1beta1::GroupStep step;
    *step.mutable_place_on() = Sets(sets);
    v1beta1::PlanResponse response;
    const CallStatus status = Take(step, &response);
    EXPECT_TRUE(status.ok()) << status.message();
    return response;
  }
  // Of another host: it never began the attempt.
  template <typename Request>
  static Request AboutGroup() {
    Request request;
    request.mutable_header()->set_attempt_id(1);
    request.mutable_header()->set_profile("p");
    request.mutable_group()->set_name("pair");
    request.mutable_group()->set_namespace_("default");
    for (const char* uid : {"default/b", "default/a"}) request.mutable_group()->add_pod_uids(uid);
    request.mutable_group()->set_needed(2);
    return request;
  }
  v1beta1::ScorePlacementsResponse Score() {
    auto request = AboutGroup<v1beta1::ScorePlacementsRequest>();
    for (const uint32_t slot : {1u, 2u}) {
      v1beta1::PlacementCandidate* candidate = request.add_placements();
      candidate->mutable_placement()->set_name(absl::StrCat("rack-", slot));
      candidate->mutable_placement()->mutable_nodes()->add_slots(slot);
      for (const uint32_t pod : {0u, 1u}) {
        candidate->mutable_assignments()->add_pods(pod);
        candidate->mutable_assignments()->add_slots(slot);
      }
    }
    v1beta1::ScorePlacementsResponse response;
    const CallStatus status = session_->ScorePlacements(request, now_, &response);
    EXPECT_TRUE(status.ok()) << status.message();
    return response;
  }

  const absl::Time now_ = absl::UnixEpoch();
  Script script_;
  sdk::PluginRegistry registry_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionGroupsTest, DescribesAGroupWithoutASearch) {
  v1beta1::GroupStep step;
  step.mutable_describe();
  v1beta1::PlanResponse response;
  ASSERT_TRUE(Take(step, &response).ok());
  ASSERT_TRUE(response.has_group()) << response.DebugString();
  const v1beta1::PendingGroup& group = response.group().group();
  EXPECT_EQ(group.name(), "pair");
  EXPECT_EQ(group.namespace_(), "default");
  EXPECT_EQ(group.needed(), 2u);
  EXPECT_THAT(group.pod_uids(), ElementsAre("default/b", "default/a")) << "the attempt's pod first";
  EXPECT_THAT(response.group().tried(), IsEmpty());
}

TEST_F(SessionGroupsTest, APodInNoGroupIsEvaluated) {
  v1beta1::GroupStep step;
  step.mutable_describe();
  v1beta1::PlanResponse response;
  ASSERT_TRUE(Take(step, &response, "default/c").ok());
  EXPECT_TRUE(response.has_evaluation());
  EXPECT_EQ(response.evaluation().filter().processed(), 4u);
}

TEST_F(SessionGroupsTest, TriesPlacementsAndLeavesNothingBehind) {
  for (int i = 0; i < 2; ++i) {
    const v1beta1::PlanResponse response = Try({{0, 1}, {2, 3}});
    ASSERT_TRUE(response.has_group()) << response.DebugString();
    ASSERT_THAT(response.group().tried(), SizeIs(2));
    EXPECT_THAT(response.group().tried(0).misfit().reason(), HasSubstr("1 of 2 members fit"));
    EXPECT_EQ(response.group().tried(0).misfit().max_schedulable(), 1u);
    EXPECT_THAT(response.group().tried(1).assignments().pods(), ElementsAre(0, 1));
    EXPECT_THAT(response.group().tried(1).assignments().slots(), ElementsAre(2, 3));
    EXPECT_EQ(session_->attempts_in_flight(), 1u);
  }
}

TEST_F(SessionGroupsTest, RejectsAGroupThatFitsIntoNoPlacement) {
  const v1beta1::PlanResponse response = Try({{0, 1}, {3}});
  ASSERT_TRUE(response.has_rejection()) << response.DebugString();
  EXPECT_THAT(response.rejection().pre_filter().rejection().reasons(0),
              HasSubstr("pair: 0/2 placements are available, first placement status: 1 of 2 "
                        "members fit"));
  EXPECT_EQ(response.rejection().group().needed(), 2u);
}

TEST_F(SessionGroupsTest, PlacesAGroupOnTheFirstSetThatFits) {
  const v1beta1::PlanResponse response = PlaceOn({{0, 1}, {2, 3}, {1, 2}});
  ASSERT_TRUE(response.has_plan()) << response.DebugString();
  EXPECT_EQ(response.plan().node_set(), 1u);
  ASSERT_THAT(response.plan().placements(), SizeIs(2));
  EXPECT_EQ(response.plan().placements(0).pod_uid(), "default/b");
  EXPECT_EQ(response.plan().placements(0).slot(), 2u);
  EXPECT_EQ(response.plan().placements(1).slot(), 3u);
  EXPECT_EQ(session_->attempts_in_flight(), 2u);
}

TEST_F(SessionGroupsTest, RefusesMalformedSteps) {
  v1beta1::PlanResponse response;
  EXPECT_EQ(Take(v1beta1::GroupStep(), &response).reason(), CallError::REASON_INVALID);
  v1beta1::GroupStep step;
  step.mutable_place_on();
  EXPECT_EQ(Take(step, &response).reason(), CallError::REASON_INVALID);
  *step.mutable_place_on() = Sets({{}});
  EXPECT_EQ(Take(step, &response).reason(), CallError::REASON_INVALID) << "no node is not any";
  *step.mutable_place_on() = Sets({{1, 1}});
  EXPECT_EQ(Take(step, &response).reason(), CallError::REASON_INVALID);
  *step.mutable_try_placements() = Sets({{1}, {4}});
  EXPECT_EQ(Take(step, &response).reason(), CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(SessionGroupsTest, PreemptsWithinThePlacements) {
  ASSERT_TRUE(Try({{0, 1}}).has_rejection());
  auto request = AboutGroup<v1beta1::PostFilterRequest>();
  request.mutable_header()->set_attempt_id(1000);
  v1beta1::PostFilterResponse response;
  ASSERT_TRUE(session_->PostFilter(request, now_, &response).ok());
  ASSERT_TRUE(response.has_candidates()) << response.DebugString();
  const v1beta1::PreemptionCandidate& candidate = response.candidates().candidates(0);
  EXPECT_EQ(candidate.plugin(), "Pairs");
  EXPECT_THAT(candidate.victim_uids(), ElementsAre("default/running"));
  ASSERT_THAT(candidate.nominations(), SizeIs(1));
  EXPECT_EQ(candidate.slot() + candidate.nominations(0).slot(), 1u) << "on nodes 0 and 1";
}

TEST_F(SessionGroupsTest, GeneratesPlacementsForAGroupThatItOnlyKnowsFromTheRequest) {
  script_.generate = [](const sdk::PendingGroup& group,
                        std::vector<sdk::GroupPlacement>* placements) {
    EXPECT_EQ(group.pending.size(), 2u);
    EXPECT_EQ(group.pending[0]->pod.name(), "b");
    EXPECT_THAT(group.placed, ElementsAre(3u));
    placements->push_back({"rack-1", {0, 1}});
    return Verdict::Success();
  };
  auto request = AboutGroup<v1beta1::GeneratePlacementsRequest>();
  request.mutable_group()->add_placed_slots(3);
  v1beta1::GeneratePlacementsResponse response;
  ASSERT_TRUE(session_->GeneratePlacements(request, now_, &response).ok());
  ASSERT_THAT(response.placements().placements(), SizeIs(1));
  EXPECT_EQ(response.placements().placements(0).name(), "rack-1");
  EXPECT_THAT(response.placements().placements(0).nodes().slots(), ElementsAre(0, 1));
  EXPECT_EQ(session_->attempts_in_flight(), 0u);

  script_.generate = [](const auto&, auto*) { return Verdict::Success(); };
  ASSERT_TRUE(session_->GeneratePlacements(request, now_, &response).ok());
  EXPECT_TRUE(response.has_any());

  script_.generate = [](const auto&, auto*) { return Verdict::Unschedulable("no rack is free"); };
  ASSERT_TRUE(session_->GeneratePlacements(request, now_, &response).ok());
  EXPECT_EQ(response.rejection().code(), v1beta1::CODE_UNSCHEDULABLE);
  EXPECT_THAT(response.rejection().reasons(), ElementsAre("no rack is free"));

  request.mutable_group()->set_pod_uids(1, "default/unknown");
  EXPECT_EQ(session_->GeneratePlacements(request, now_, &response).reason(),
            CallError::REASON_OBJECT_UNKNOWN);
}

TEST_F(SessionGroupsTest, ScoresAllPlacementsInOneCall) {
  script_.score = [](absl::Span<const sdk::PlacementCandidate> candidates,
                     absl::Span<sdk::PlacementScore> scores) {
    EXPECT_EQ(candidates[1].name, "rack-2");
    EXPECT_THAT(candidates[1].nodes, ElementsAre(2u));
    EXPECT_EQ(candidates[1].places[0].first->pod.name(), "b");
    scores[0].score = 70;
    scores[1].excluded = "too hot";
    return Verdict::Success();
  };
  v1beta1::ScorePlacementsResponse response = Score();
  ASSERT_THAT(response.plugins(), SizeIs(1));
  EXPECT_EQ(response.plugins(0).scores(), std::string("\x46\x00", 2));
  ASSERT_THAT(response.plugins(0).excluded(), SizeIs(1));
  EXPECT_EQ(response.plugins(0).excluded(0).placement(), 1u);
  EXPECT_EQ(response.plugins(0).excluded(0).reason(), "too hot");

  script_.score = [](const auto&, auto scores) {
    scores[0].score = 101;
    return Verdict::Success();
  };
  response = Score();
  EXPECT_THAT(response.plugins(), IsEmpty());
  EXPECT_EQ(response.error().code(), v1beta1::CODE_ERROR);
  EXPECT_THAT(response.error().reasons(0), HasSubstr("the score 101 of placement rack-1"));
}

}  // namespace
}  // namespace outboard::runtime::session_groups_test
