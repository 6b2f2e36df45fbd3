#include "shim/hosts/group_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace outboard::hosts::group_points_test {
namespace {

using namespace v1beta1;  // NOLINT: names of points and capabilities
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PluginInfo* AddPlugin(const std::string& name, const std::vector<ExtensionPoint>& points,
                      GetHostInfoResponse* info) {
  PluginInfo* plugin = info->add_plugins();
  plugin->set_name(name);
  for (const ExtensionPoint point : points) plugin->add_extension_points(point);
  return plugin;
}

// The host that knows groups.
GetHostInfoResponse Groups(bool takes_steps = true, bool has_permit = true) {
  GetHostInfoResponse info;
  for (const Capability capability : {CAPABILITY_FUSED_CYCLE, CAPABILITY_GROUP_PLAN})
    info.add_capabilities(capability);
  if (takes_steps) info.add_capabilities(CAPABILITY_GROUP_PLACEMENTS);
  AddPlugin("PrioritySort", {EXTENSION_POINT_QUEUE_SORT}, &info);
  AddPlugin("DefaultBinder", {EXTENSION_POINT_BIND}, &info);
  AddPlugin("Fit", {EXTENSION_POINT_FILTER}, &info);
  AddPlugin(
      "Gang",
      {has_permit ? EXTENSION_POINT_PERMIT : EXTENSION_POINT_RESERVE, EXTENSION_POINT_PRE_FILTER},
      &info);
  return info;
}

// The host with the plugins at the points of groups.
GetHostInfoResponse Racks() {
  GetHostInfoResponse info;
  AddPlugin("Racks", {EXTENSION_POINT_PLACEMENT_GENERATE}, &info);
  AddPlugin("Tight", {EXTENSION_POINT_PLACEMENT_SCORE}, &info);
  AddPlugin("Evict", {EXTENSION_POINT_POD_GROUP_POST_FILTER, EXTENSION_POINT_PRE_ENQUEUE}, &info);
  return info;
}

config::Config Configuration(const std::string& more = "") {
  absl::StatusOr<config::Config> config =
      config::ParseConfig(absl::StrCat(R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: Fit}, {name: Gang}, {name: DefaultBinder}]
    preFilter: {disabled: [{name: NotServed}]}
    placementGenerate: {enabled: [{name: Racks}]}
    placementScore: {enabled: [{name: Tight, weight: 3}]}
    podGroupPostFilter: {enabled: [{name: Evict}]}
    preEnqueue: {enabled: [{name: Evict}]}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts: [{name: groups, address: "unix:/groups"}, {name: racks, address: "unix:/racks"}]
)",
                                       more),
                          "f.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

absl::StatusOr<Plans> PlansWith(const GetHostInfoResponse& groups, const GetHostInfoResponse& racks,
                                const std::string& more = "") {
  return MakePlans(Configuration(more), {"groups", "racks"},
                   {{"groups", groups}, {"racks", racks}});
}

TEST(GroupPoints, AnyHostCanServeThem) {
  const auto plans = PlansWith(Groups(), Racks());
  ASSERT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  EXPECT_THAT(plan.host_names, ElementsAre("groups", "racks"));
  EXPECT_EQ(plan.num_algorithm_hosts(), 1u) << "the other host is only asked about groups";
  ASSERT_THAT(plan.placement_generate, SizeIs(1));
  EXPECT_EQ(plan.placement_generate[0].host_name, "racks");
  EXPECT_FALSE(plan.placement_generate[0].fail_open);
  ASSERT_THAT(plan.placement_score, SizeIs(1));
  ASSERT_THAT(plan.placement_score_plugins, SizeIs(1));
  EXPECT_EQ(plan.placement_score_plugins[0].name, "Tight");
  EXPECT_EQ(plan.placement_score_plugins[0].weight, 3);
  ASSERT_THAT(plan.pod_group_post_filter, SizeIs(1));
  EXPECT_THAT(plan.preemption_gates, ElementsAre("Evict"));
  EXPECT_FALSE(plan.CanDoWithout(1));
  EXPECT_THAT(plans->resolved.warnings, IsEmpty());
}

TEST(GroupPoints, AFailurePolicyMakesTheHostOptional) {
  const auto plans = PlansWith(Groups(), Racks(), R"(failurePolicies:
- {plugin: Racks, point: placementGenerate, policy: FailOpen}
- {plugin: Tight, point: placementScore, policy: FailOpen}
- {plugin: Evict, point: podGroupPostFilter, policy: FailOpen}
- {plugin: Evict, point: preEnqueue, policy: FailOpen}
)");
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_TRUE(plans->profiles.at(0).placement_generate[0].fail_open);
  EXPECT_TRUE(plans->profiles.at(0).CanDoWithout(1));
}

TEST(GroupPoints, TheHostThatKnowsGroupsMustTakeSteps) {
  const absl::Status status = PlansWith(Groups(/*takes_steps=*/false), Racks()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("f.yaml:10:35: profiles[0].plugins.placementGenerate.enabled[0]: plugin "
                        "\"Racks\" at placementGenerate of profile \"p\" needs one host with the "
                        "capabilities FUSED_CYCLE, GROUP_PLAN and GROUP_PLACEMENTS"));
}

TEST(GroupPoints, TwoHostsFromPreFilterToScoreCannotPlaceGroups) {
  GetHostInfoResponse groups = Groups();
  GetHostInfoResponse racks = Racks();
  groups.mutable_plugins()->DeleteSubrange(2, 1);
  AddPlugin("Fit", {EXTENSION_POINT_FILTER}, &racks);
  EXPECT_THAT(std::string(PlansWith(groups, racks).status().message()),
              HasSubstr("for all plugins from preFilter to score"));
}

TEST(GroupPoints, WithoutPermitThereAreNoGroups) {
  const auto plans = PlansWith(Groups(/*takes_steps=*/true, /*has_permit=*/false), Racks());
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_THAT(plans->resolved.warnings,
              ElementsAre(HasSubstr("has no effect: without a plugin at permit")));
}

}  // namespace
}  // namespace outboard::hosts::group_points_test
