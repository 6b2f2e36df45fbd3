#include "shim/hosts/plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/short_names.h"
#include "shim/hosts/shim_info.h"

namespace outboard::hosts {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::ExtensionPoint;

const std::vector<ExtensionPoint>& PointsOf(const std::string& plugin) {
  using namespace v1beta1;  // NOLINT: names of points
  static const auto& points = *new std::map<std::string, std::vector<ExtensionPoint>>{
      {"PrioritySort", {EXTENSION_POINT_QUEUE_SORT}},
      {"DefaultBinder", {EXTENSION_POINT_BIND}},
      {"First",
       {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_RESERVE,
        EXTENSION_POINT_PERMIT}},
      {"Second",
       {EXTENSION_POINT_FILTER, EXTENSION_POINT_PRE_SCORE, EXTENSION_POINT_SCORE,
        EXTENSION_POINT_PERMIT}},
      {"Third",
       {EXTENSION_POINT_PRE_FILTER, EXTENSION_POINT_FILTER, EXTENSION_POINT_RESERVE,
        EXTENSION_POINT_SCORE}},
      {"Preempting", {EXTENSION_POINT_PRE_ENQUEUE, EXTENSION_POINT_POST_FILTER}},
      {"Gate", {EXTENSION_POINT_PRE_ENQUEUE}},
  };
  return points.at(plugin);
}

v1beta1::GetHostInfoResponse Host(const std::vector<std::string>& plugins) {
  v1beta1::GetHostInfoResponse info;
  for (const std::string& name : plugins) {
    v1beta1::PluginInfo* plugin = info.add_plugins();
    plugin->set_name(name);
    for (const ExtensionPoint point : PointsOf(name)) plugin->add_extension_points(point);
  }
  return info;
}

// All plugins of PointsOf, in this order, on hosts in the configuration's order.
config::Config Configuration(const std::vector<std::string>& hosts) {
  std::string text = R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled: [{name: PrioritySort}, {name: Gate}, {name: First}, {name: Second, weight: 3}, {name: Third}, {name: Preempting}, {name: DefaultBinder}]
    preFilter: {disabled: [{name: NotServed}]}
  pluginConfig:
  - name: Second
    args: {x: 1}
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
hosts:
)";
  for (const std::string& host : hosts) {
    absl::StrAppend(&text, "- {name: ", host, ", address: \"unix:/", host, "\"}\n");
  }
  absl::StatusOr<config::Config> config = config::ParseConfig(text, "f.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *config;
}

// "POINT: plugins" of a Configure.
std::vector<std::string> TextsOf(const v1beta1::ConfigureRequest& request) {
  std::vector<std::string> points;
  for (const auto& point : request.profiles(0).points()) {
    std::string text = absl::StrCat(ShortName(point.extension_point()), ":");
    for (const std::string& plugin : point.plugins()) absl::StrAppend(&text, " ", plugin);
    points.push_back(text);
  }
  return points;
}

std::vector<std::string> Shares(const std::vector<framework::HostExtensionPoint>& shares) {
  std::vector<std::string> all;
  for (const framework::HostExtensionPoint& share : shares) {
    std::string text = absl::StrCat(share.host_name, ":");
    for (const auto& plugin : share.plugins) {
      absl::StrAppend(&text, " ", plugin.name, "@", plugin.position);
    }
    all.push_back(text);
  }
  return all;
}

TEST(PlansTest, AHostThatServesAllDoesItAlone) {
  const v1beta1::GetHostInfoResponse all =
      Host({"PrioritySort", "Gate", "First", "Second", "Third", "Preempting", "DefaultBinder"});
  auto plans = MakePlans(Configuration({"a", "b"}), {"a", "b"}, {{"a", all}, {"b", all}});
  ASSERT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  EXPECT_THAT(plan.host_names, ElementsAre("a"));
  EXPECT_THAT(plan.algorithm.shares, IsEmpty());
  EXPECT_THAT(plan.preemption_gates, ElementsAre("Preempting"));
  EXPECT_EQ(plan.sort_host, "");
  ASSERT_THAT(plans->configure, SizeIs(1));
  const v1beta1::ConfigureRequest& request = plans->configure.at("a");
  EXPECT_EQ(request.shim().SerializeAsString(), ThisShim().SerializeAsString());
  EXPECT_FALSE(request.validate_only());
}

// Its name; empty: none.
std::string MainHost(const std::vector<std::string>& hosts, const HostInfos& infos) {
  auto plans = MakePlans(Configuration(hosts), hosts, infos);
  EXPECT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  return plan.algorithm.main_host.has_value() ? plan.host_names[*plan.algorithm.main_host] : "";
}

TEST(PlansTest, TheMainHostIsTheOneOfTheMostFiltersThatCanBeAskedAllAtOnce) {
  const auto fused = [](v1beta1::GetHostInfoResponse info) {
    info.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
    return info;
  };
  const auto others = Host({"PrioritySort", "Gate", "Preempting", "DefaultBinder"});
  const auto one = Host({"First"});
  const auto two = Host({"Second", "Third"});
  EXPECT_EQ(MainHost({"a", "b", "c"}, {{"a", fused(one)}, {"b", two}, {"c", fused(others)}}), "a");
  EXPECT_EQ(MainHost({"a", "b", "c"}, {{"a", one}, {"b", fused(two)}, {"c", fused(others)}}), "b");
  EXPECT_EQ(MainHost({"a", "b", "c"}, {{"a", fused(one)}, {"b", fused(two)}, {"c", others}}), "b");
  EXPECT_EQ(MainHost({"a", "b", "c"}, {{"a", one}, {"b", two}, {"c", fused(others)}}), "");
  // As many filters: the first in the profile, whatever the order of the hosts.
  EXPECT_EQ(MainHost({"c", "b", "a", "d"}, {{"a", fused(Host({"Second"}))},
                                            {"b", fused(Host({"Third"}))},
                                            {"c", fused(one)},
                                            {"d", others}}),
            "c");
  EXPECT_EQ(MainHost({"c", "b", "a", "d"}, {{"a", fused(Host({"Second"}))},
                                            {"b", fused(Host({"Third"}))},
                                            {"c", one},
                                            {"d", others}}),
            "a");
}

TEST(PlansTest, AHostWithoutACacheHasAShareEvenAlone) {
  v1beta1::GetHostInfoResponse all =
      Host({"PrioritySort", "Gate", "First", "Second", "Third", "Preempting", "DefaultBinder"});
  all.add_capabilities(v1beta1::CAPABILITY_INLINE_NODES);
  const auto plans = MakePlans(Configuration({"a"}), {"a"}, {{"a", all}});
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_THAT(plans->profiles.at(0).algorithm.shares, SizeIs(1));
  EXPECT_FALSE(plans->profiles.at(0).algorithm.main_host.has_value());
}

TEST(PlansTest, EachPluginIsRunByTheFirstHostThatServesIt) {
  // b comes first, so that it runs Third, which a also serves.
  auto plans =
      MakePlans(Configuration({"b", "a"}), {"b", "a"},
                {{"a", Host({"PrioritySort", "First", "Third", "Preempting", "DefaultBinder"})},
                 {"b", Host({"Second", "Third", "Gate"})}});
  ASSERT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  EXPECT_THAT(plan.host_names, ElementsAre("b", "a"));
  EXPECT_THAT(plan.algorithm.filter_plugins, ElementsAre("First", "Second", "Third"));
  ASSERT_THAT(plan.algorithm.shares, SizeIs(2));
  const framework::HostProfile& b = plan.algorithm.shares[0];
  EXPECT_THAT(b.pre_filter_plugins, ElementsAre("Third"));
  EXPECT_THAT(b.filter_plugins, ElementsAre("Second", "Third"));
  EXPECT_THAT(b.pre_score_plugins, ElementsAre("Second"));
  ASSERT_THAT(b.score_plugins, SizeIs(2));
  EXPECT_EQ(b.score_plugins[0].weight, 3);
  const framework::HostProfile& a = plan.algorithm.shares[1];
  EXPECT_THAT(a.filter_plugins, ElementsAre("First"));
  EXPECT_THAT(a.score_plugins, IsEmpty());
  // Hosts in the order of their first plugins.
  EXPECT_THAT(Shares(plan.reserve), ElementsAre("a: First@0", "b: Third@1"));
  EXPECT_TRUE(plan.Serves("b", "Third"));
  EXPECT_FALSE(plan.Serves("a", "Third"));
  EXPECT_FALSE(plan.Serves("a", "Stranger"));
  EXPECT_THAT(Shares(plan.permit), ElementsAre("a: First@0", "b: Second@1"));
  EXPECT_THAT(Shares(plan.pre_enqueue), ElementsAre("b: Gate@0", "a: Preempting@1"));
  EXPECT_THAT(plan.post_filter_hosts, ElementsAre("a"));
  // A host gets only its own plugins and their arguments.
  EXPECT_THAT(
      TextsOf(plans->configure.at("b")),
      ElementsAre("PRE_ENQUEUE: Gate", "PRE_FILTER: Third", "FILTER: Second Third",
                  "PRE_SCORE: Second", "SCORE: Second Third", "RESERVE: Third", "PERMIT: Second"));
  ASSERT_THAT(plans->configure.at("b").profiles(0).args(), SizeIs(1));
  EXPECT_EQ(plans->configure.at("b").profiles(0).args(0).plugin(), "Second");
  EXPECT_THAT(plans->configure.at("a").profiles(0).args(), IsEmpty());
}

TEST(PlansTest, AHostThatOnlyComesAfterThePlacementLeavesTheOtherFused) {
  auto plans = MakePlans(Configuration({"gate", "main"}), {"gate", "main"},
                         {{"gate", Host({"Gate"})},
                          {"main", Host({"PrioritySort", "First", "Second", "Third", "Preempting",
                                         "DefaultBinder"})}});
  ASSERT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  EXPECT_THAT(plan.host_names, ElementsAre("main", "gate"));
  EXPECT_THAT(plan.algorithm.shares, IsEmpty());
  EXPECT_EQ(plan.num_algorithm_hosts(), 1u);
  EXPECT_THAT(Shares(plan.pre_enqueue), ElementsAre("gate: Gate@0", "main: Preempting@1"));
}

TEST(PlansTest, APluginIsNeverSplit) {
  v1beta1::GetHostInfoResponse a =
      Host({"PrioritySort", "Gate", "First", "Second", "Preempting", "DefaultBinder", "Third"});
  v1beta1::GetHostInfoResponse b = a;
  // a lost Third's Filter, b its Reserve.
  auto* of_a = a.mutable_plugins(6)->mutable_extension_points();
  of_a->Set(1, v1beta1::EXTENSION_POINT_PRE_FILTER);
  auto* of_b = b.mutable_plugins(6)->mutable_extension_points();
  of_b->Set(2, v1beta1::EXTENSION_POINT_PRE_FILTER);
  const auto plans = MakePlans(Configuration({"a", "b"}), {"a", "b"}, {{"a", a}, {"b", b}});
  EXPECT_THAT(std::string(plans.status().message()),
              HasSubstr("f.yaml: profile \"p\": no host serves plugin \"Third\" at all of its "
                        "points"));
}

TEST(PlansTest, ACustomResourceMustBeAllowedInTheConfiguration) {
  v1beta1::GetHostInfoResponse info =
      Host({"PrioritySort", "Gate", "First", "Second", "Preempting", "DefaultBinder", "Third"});
  v1beta1::DeclaredResource* wanted = info.mutable_plugins(2)->add_declared_resources();
  wanted->set_resource("widgets.v1.example.com");
  wanted->add_verbs(v1beta1::DeclaredResource::VERB_CREATE);
  wanted->add_verbs(v1beta1::DeclaredResource::VERB_UPDATE_STATUS);
  config::Config config = Configuration({"a"});
  const auto problem = [&] {
    return std::string(MakePlans(config, {"a"}, {{"a", info}}).status().message());
  };
  EXPECT_EQ(problem(),
            "f.yaml: profile \"p\": plugin First needs a custom resource that customResources does "
            "not allow; add to it: {resource: widgets.v1.example.com, verbs: [create, "
            "updateStatus]}");
  const auto keepers = [&] {
    return MakePlans(config, {"a"}, {{"a", info}})->profiles[0].object_writers;
  };
  wanted->set_optional(true);
  EXPECT_EQ(problem(), "");
  EXPECT_THAT(keepers(), IsEmpty()) << "it is not allowed";
  wanted->set_optional(false);
  config.shim.custom_resources = {
      {"widgets.v1.example.com", {v1beta1::DeclaredResource::VERB_CREATE}, {}, {}}};
  EXPECT_THAT(problem(), HasSubstr("add to it"));
  config.shim.custom_resources[0].verbs.push_back(v1beta1::DeclaredResource::VERB_UPDATE_STATUS);
  EXPECT_EQ(problem(), "");
  EXPECT_THAT(keepers(), ElementsAre("a"));
  wanted->set_optional(true);
  EXPECT_THAT(keepers(), ElementsAre("a"));
}

TEST(PlansTest, AFieldThatTheShimCannotSendIsAProblemOfThePlugin) {
  v1beta1::GetHostInfoResponse info =
      Host({"PrioritySort", "Gate", "First", "Second", "Preempting", "DefaultBinder", "Third"});
  v1beta1::PluginInfo* plugin = info.mutable_plugins(2);
  config::Config config = Configuration({"a"});
  const auto problem = [&](const std::string& path) {
    plugin->clear_needed_fields();
    plugin->add_needed_fields(path);
    return std::string(MakePlans(config, {"a"}, {{"a", info}}).status().message());
  };
  for (const std::string& form : ThisShim().needed_fields()) {
    if (absl::StrContains(form, "env['")) continue;
    EXPECT_EQ(problem(form), "") << form;
  }
  EXPECT_EQ(problem("Pod.spec.hostname"),
            "f.yaml: profile \"p\": plugin First needs field Pod.spec.hostname, which this shim "
            "cannot send");
  EXPECT_THAT(problem("Node.metadata.annotations['a'"), HasSubstr("cannot send"));
  EXPECT_LT(problem(std::string(512, 'x')).size(), 1500u);

  EXPECT_EQ(problem("Pod.spec.containers[*].env['WORLD_SIZE']"), "");
  EXPECT_EQ(problem("Pod.spec.containers[*].env['RACK']"),
            "f.yaml: profile \"p\": plugin First needs field Pod.spec.containers[*].env['RACK'], "
            "which allowedEnvironmentVariables does not allow; add the name to it");
  config.shim.reading.environment_variables = {"RACK"};
  EXPECT_EQ(problem("Pod.spec.containers[*].env['RACK']"), "");
  EXPECT_THAT(problem("Pod.spec.containers[*].env['WORLD_SIZE']"), HasSubstr("does not allow"));

  plugin->clear_needed_fields();
  plugin->add_optional_fields("Pod.spec.hostname");
  plugin->add_optional_fields("Pod.spec.containers[*].env['WORLD_SIZE']");
  const auto plans = MakePlans(config, {"a"}, {{"a", info}});
  EXPECT_TRUE(plans.ok()) << plans.status();
  // A plugin that no profile uses may need anything.
  v1beta1::PluginInfo* unused = info.add_plugins();
  unused->set_name("Unused");
  unused->add_needed_fields("Pod.spec.hostname");
  EXPECT_TRUE(MakePlans(config, {"a"}, {{"a", info}}).ok());
}

TEST(PlansTest, APluginCannotDeclareWhatItCannotRead) {
  v1beta1::GetHostInfoResponse info =
      Host({"PrioritySort", "Gate", "First", "Second", "Preempting", "DefaultBinder", "Third"});
  v1beta1::DeclaredResource* wanted = info.mutable_plugins(2)->add_declared_resources();
  config::Config config = Configuration({"a"});
  const auto problem = [&] {
    return std::string(MakePlans(config, {"a"}, {{"a", info}}).status().message());
  };
  wanted->set_resource("secrets.v1");
  EXPECT_EQ(problem(),
            "f.yaml: profile \"p\": plugin First declares resource secrets.v1: Secrets cannot be "
            "read or written by plugins");
  wanted->set_resource("pods.v1");
  EXPECT_THAT(problem(), HasSubstr("plugin First declares pods.v1 without verbs"));
  wanted->add_verbs(v1beta1::DeclaredResource::VERB_PATCH);
  config.shim.custom_resources = {{"pods.v1", {v1beta1::DeclaredResource::VERB_PATCH}, {}, {}}};
  EXPECT_EQ(problem(), "");
}

TEST(Interests, AnyFieldIsEnough) {
  v1beta1::Pod pod;
  (*pod.mutable_labels())["l"] = "";
  (*pod.mutable_annotations())["a"] = "";
  pod.add_scheduling_gates("g");
  pod.set_pod_group_name("gang");
  pod.add_volumes()->set_source("hostPath");
  pod.add_claims()->set_name("c");
  const v1beta1::Pod plain;
  for (const char* field :
       {"metadata.labels['l']", "metadata.annotations['a']", "spec.schedulingGates",
        "spec.schedulingGroup", "spec.volumes[*].hostPath", "spec.resourceClaims"}) {
    EXPECT_TRUE(framework::AnyInterestedIn(std::vector<framework::InterestedPlugin>{{"P", {field}}},
                                           pod, {}))
        << field;
    EXPECT_FALSE(framework::AnyInterestedIn(
        std::vector<framework::InterestedPlugin>{{"P", {field}}}, plain, {}))
        << field;
  }
  const std::vector<framework::InterestedPlugin> unknown = {{"P", {"spec.colour"}}};
  EXPECT_TRUE(framework::AnyInterestedIn(unknown, plain, {}));
}

TEST(Interests, AResourceForWhichADeviceClassStands) {
  const std::vector<framework::InterestedPlugin> plugins = {
      {"P", {"spec.containers[*].resources.requests[deviceClass]"}}};
  v1beta1::Pod pod;
  pod.add_containers();
  v1beta1::Container* init = pod.add_init_containers();
  (*init->mutable_requests()->mutable_scalar())["example.com/gpu"] = 1;
  EXPECT_FALSE(framework::AnyInterestedIn(plugins, pod, {}));
  EXPECT_FALSE(framework::AnyInterestedIn(plugins, pod, {{"example.com/nic", 1}}));
  EXPECT_TRUE(framework::AnyInterestedIn(plugins, pod, {{"example.com/gpu", 1}}));
}

// "First" of host "a" is only interested in pods with claims.
HostInfos WithInterests(const std::vector<ExtensionPoint>& points) {
  HostInfos infos = {
      {"a", Host({"First"})},
      {"b", Host({"PrioritySort", "Gate", "Second", "Third", "Preempting", "DefaultBinder"})}};
  v1beta1::PluginInfo* first = infos["a"].mutable_plugins(0);
  first->add_extension_points(v1beta1::EXTENSION_POINT_SCORE);
  first->add_extension_points(v1beta1::EXTENSION_POINT_POST_FILTER);
  first->add_extension_points(v1beta1::EXTENSION_POINT_PRE_BIND);
  for (const ExtensionPoint point : points) {
    v1beta1::Interest* interest = first->add_interests();
    interest->set_extension_point(point);
    interest->add_any_field_set("spec.resourceClaims");
    if (point == v1beta1::EXTENSION_POINT_PRE_FILTER) interest->set_post_filter_reason("no claims");
  }
  return infos;
}

// "First" at bind, before DefaultBinder, and at postBind and preBind, as its host declares it.
framework::ProfilePlan PlanWithBinder(
    const std::function<void(v1beta1::PluginInfo*)>& declare = nullptr) {
  HostInfos infos = {{"a", Host({"PrioritySort", "Gate", "First", "Second", "Third", "Preempting",
                                 "DefaultBinder"})}};
  v1beta1::PluginInfo* first = infos["a"].mutable_plugins(2);
  first->add_extension_points(v1beta1::EXTENSION_POINT_PRE_BIND);
  first->add_extension_points(v1beta1::EXTENSION_POINT_BIND);
  first->add_extension_points(v1beta1::EXTENSION_POINT_POST_BIND);
  if (declare) declare(first);
  const auto plans = MakePlans(Configuration({"a"}), {"a"}, infos);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return plans.ok() ? plans->profiles.at(0) : framework::ProfilePlan();
}

v1beta1::Interest* AddInterest(ExtensionPoint point, v1beta1::PluginInfo* plugin) {
  v1beta1::Interest* interest = plugin->add_interests();
  interest->set_extension_point(point);
  return interest;
}

TEST(PlansTest, PluginsBeforeDefaultBinderAreAskedToBind) {
  const framework::ProfilePlan plan = PlanWithBinder();
  ASSERT_THAT(plan.bind, SizeIs(1));
  EXPECT_EQ(plan.bind[0].host_name, "a");
  EXPECT_EQ(plan.bind[0].plugins[0].name, "First");
  EXPECT_FALSE(plan.bind[0].fail_open);
  EXPECT_TRUE(plan.shim_binds);
  ASSERT_THAT(plan.post_bind, SizeIs(1));
  EXPECT_EQ(plan.post_bind[0].plugins[0].name, "First");
}

TEST(PlansTest, WithoutAnInterestPreBindIsOnlyAskedAboutEffects) {
  EXPECT_THAT(PlanWithBinder().pre_bind, IsEmpty());
  const framework::ProfilePlan every = PlanWithBinder([](v1beta1::PluginInfo* first) {
    AddInterest(v1beta1::EXTENSION_POINT_PRE_BIND, first)->set_every_pod(true);
  });
  ASSERT_THAT(every.pre_bind, SizeIs(1));
  EXPECT_THAT(every.pre_bind[0].plugins[0].fields, IsEmpty());
  const framework::ProfilePlan some = PlanWithBinder([](v1beta1::PluginInfo* first) {
    AddInterest(v1beta1::EXTENSION_POINT_PRE_BIND, first)
        ->add_any_field_set("metadata.labels['rank']");
  });
  ASSERT_THAT(some.pre_bind, SizeIs(1));
  EXPECT_THAT(some.pre_bind[0].plugins[0].fields, SizeIs(1));
}

// As the adapter declares the plugins of hosts without the service.
TEST(PlansTest, TheShimBindsInTheNameOfAPluginThatIsNeverAsked) {
  const framework::ProfilePlan plan = PlanWithBinder([](v1beta1::PluginInfo* first) {
    AddInterest(v1beta1::EXTENSION_POINT_BIND, first)->set_no_pod(true);
    AddInterest(v1beta1::EXTENSION_POINT_POST_BIND, first)->set_no_pod(true);
  });
  EXPECT_THAT(plan.bind, IsEmpty());
  EXPECT_TRUE(plan.shim_binds);
  EXPECT_THAT(plan.post_bind, IsEmpty());
}

TEST(PlansTest, AHostIsSkippedForPodsThatNoneOfItsPluginsHandles) {
  const auto plans =
      MakePlans(Configuration({"a", "b"}), {"a", "b"},
                WithInterests({v1beta1::EXTENSION_POINT_PRE_FILTER,
                               v1beta1::EXTENSION_POINT_RESERVE, v1beta1::EXTENSION_POINT_PERMIT}));
  ASSERT_TRUE(plans.ok()) << plans.status();
  const framework::ProfilePlan& plan = plans->profiles.at(0);
  EXPECT_THAT(plan.host_names, ElementsAre("a", "b"));
  v1beta1::Pod pod;
  const framework::ProfilePlan& without = *plan.For(pod, {});
  ASSERT_NE(&without, &plan);
  EXPECT_EQ(without.algorithm.name, "p");
  EXPECT_THAT(without.host_names, ElementsAre("b"));
  EXPECT_THAT(without.algorithm.shares, IsEmpty()) << "a single host serves them";
  EXPECT_THAT(without.algorithm.filter_plugins, ElementsAre("Second", "Third"));
  EXPECT_THAT(without.algorithm.skipped_score_plugins, ElementsAre("First"));
  ASSERT_THAT(without.skipped_before, SizeIs(1));
  EXPECT_EQ(without.skipped_before[0].reason, "no claims");
  EXPECT_THAT(without.skipped_before[0].behind, IsEmpty()) << "the first at PreFilter";
  EXPECT_THAT(without.skipped_after, IsEmpty());
  EXPECT_THAT(Shares(without.reserve), ElementsAre("b: Third@0"));
  pod.add_claims()->set_name("c");
  EXPECT_EQ(plan.For(pod, {}), &plan);
}

TEST(PlansTest, AHostWithAPointForEveryPodIsNeverSkipped) {
  const auto plans = MakePlans(
      Configuration({"a", "b"}), {"a", "b"},
      WithInterests({v1beta1::EXTENSION_POINT_PRE_FILTER, v1beta1::EXTENSION_POINT_RESERVE}));
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_THAT(plans->profiles.at(0).skipped, IsEmpty()) << "Permit";
}

TEST(PlansTest, AProblemOfAPluginNamesItsPlaceInTheFile) {
  const absl::StatusOr<config::Config> config = config::ParseConfig(
      R"(apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: p
  plugins:
    multiPoint: {enabled: [{name: First}, {name: Second}]}
    reserve: {enabled: [{name: First}]}
  pluginConfig:
  - name: Second
    args: {x: 1}
)",
      "f.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  config::Profiles profiles;
  profiles.profiles.emplace_back().name = "p";
  profiles.profiles[0].args = config->scheduler.profiles[0].plugin_config;
  const auto text = [&](const std::string& profile, const std::string& plugin,
                        const std::string& field) {
    v1beta1::ConfigureResponse response;
    v1beta1::ConfigProblem* problem = response.add_problems();
    problem->set_profile(profile);
    problem->set_plugin(plugin);
    problem->set_field(field);
    problem->set_message("wrong");
    return std::string(ConfigureError(*config, profiles, response).message());
  };
  EXPECT_EQ(text("p", "First", ""),
            "f.yaml:7:25: profiles[0].plugins.reserve.enabled[0]: wrong (profile \"p\", plugin "
            "First)");
  EXPECT_EQ(text("p", "Second", ""),
            "f.yaml:6:43: profiles[0].plugins.multiPoint.enabled[1]: wrong (profile \"p\", plugin "
            "Second)");
  EXPECT_EQ(text("p", "Second", "x"),
            "f.yaml:10:5: profiles[0].pluginConfig[0].args.x: wrong (profile \"p\", plugin "
            "Second)");
  EXPECT_EQ(text("p", "Third", ""), "f.yaml: wrong (profile \"p\", plugin Third)") << "a default";
  EXPECT_EQ(text("q", "First", ""), "f.yaml: wrong (profile \"q\", plugin First)");
}

TEST(PlansTest, WarningsOfAHostAreNoError) {
  config::Config config;
  config.file = "f.yaml";
  v1beta1::ConfigureResponse response;
  const auto add = [&](const std::string& message, int severity) {
    v1beta1::ConfigProblem* problem = response.add_problems();
    problem->set_profile("p");
    problem->set_plugin("First");
    problem->set_field("x");
    problem->set_message(message);
    problem->set_severity(static_cast<v1beta1::ConfigProblem::Severity>(severity));
  };
  add("old", v1beta1::ConfigProblem::SEVERITY_WARNING);
  EXPECT_TRUE(ConfigureError(config, {}, response).ok());
  EXPECT_THAT(ConfigureWarnings(config, {}, response),
              ElementsAre("f.yaml.x: old (profile \"p\", plugin First)"));
  add("first", v1beta1::ConfigProblem::SEVERITY_UNSPECIFIED);
  add("second", v1beta1::ConfigProblem::SEVERITY_ERROR);
  add("third", 77);
  EXPECT_EQ(ConfigureError(config, {}, response).message(),
            "f.yaml.x: first (profile \"p\", plugin First)\n"
            "f.yaml.x: second (profile \"p\", plugin First)\n"
            "f.yaml.x: third (profile \"p\", plugin First)");
  EXPECT_THAT(ConfigureWarnings(config, {}, response), SizeIs(1));
}

}  // namespace
}  // namespace outboard::hosts
