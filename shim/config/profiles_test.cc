#include "shim/config/profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "shim/config/testing/catalog.h"

namespace outboard::config::profiles_test {
namespace {

using testing::AddPlugin;
using testing::Catalog;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using v1beta1::ExtensionPoint;

absl::StatusOr<Profiles> Resolve(const std::string& body,
                                 const PluginCatalog& catalog = Catalog()) {
  absl::StatusOr<Config> config = ParseConfig(
      absl::StrCat("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
                   body),
      "f.yaml");
  if (!config.ok()) return config.status();
  return ResolveProfiles(*config, catalog);
}

std::vector<std::string> At(const Profiles& profiles, ExtensionPoint point, size_t index = 0) {
  std::vector<std::string> names;
  for (const EnabledPlugin& plugin : profiles.profiles.at(index).at(point)) {
    names.push_back(plugin.weight == 0 ? plugin.name
                                       : absl::StrCat(plugin.name, ":", plugin.weight));
  }
  return names;
}

TEST(ResolveProfiles, Defaults) {
  absl::StatusOr<Profiles> p = Resolve("");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_ENQUEUE),
              ElementsAre("SchedulingGates", "DynamicResources"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_QUEUE_SORT), ElementsAre("PrioritySort"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER),
              ElementsAre("NotServed", "NodeAffinity", "NodePorts", "NodeResourcesFit",
                          "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
                          "PodTopologySpread", "InterPodAffinity", "DynamicResources",
                          "NodeDeclaredFeatures"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_FILTER),
              ElementsAre("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
                          "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits",
                          "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
                          "DynamicResources", "NodeDeclaredFeatures"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_SCORE),
              ElementsAre("TaintToleration", "NodeAffinity", "NodeResourcesFit",
                          "NodeResourcesBalancedAllocation"));
  EXPECT_THAT(
      At(*p, v1beta1::EXTENSION_POINT_SCORE),
      ElementsAre("TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1", "DynamicResources:2",
                  "NodeResourcesBalancedAllocation:1", "ImageLocality:1"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_RESERVE),
              ElementsAre("VolumeBinding", "DynamicResources"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_BIND),
              ElementsAre("VolumeBinding", "DynamicResources"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_BIND), ElementsAre("DefaultBinder"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PERMIT), IsEmpty());
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_POST_FILTER),
              ElementsAre("DynamicResources", "DefaultPreemption"));
  EXPECT_EQ(p->profiles[0].name, "default-scheduler");
  EXPECT_THAT(p->warnings, IsEmpty());
}

struct OrderCase {
  const char* what;
  const char* plugins;  // flow style, for one profile
  std::vector<std::string> filter;
  std::vector<std::string> score;
};

TEST(ResolveProfiles, ExpandsMultiPointAsKubeSchedulerDoes) {
  const std::vector<std::string> kFilter = {"NodeUnschedulable",  "NodeName",
                                            "TaintToleration",    "NodeAffinity",
                                            "NodePorts",          "NodeResourcesFit",
                                            "VolumeRestrictions", "NodeVolumeLimits",
                                            "VolumeBinding",      "VolumeZone",
                                            "PodTopologySpread",  "InterPodAffinity",
                                            "DynamicResources",   "NodeDeclaredFeatures"};
  const OrderCase cases[] = {
      {"a plugin added at multiPoint comes last",
       "multiPoint: {enabled: [{name: GPUAware}]}",
       {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
        "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
        "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
        "GPUAware"},
       {"TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1", "ImageLocality:1", "GPUAware:4"}},
      {"a default named at multiPoint keeps its place and loses its weight",
       "multiPoint: {enabled: [{name: TaintToleration}, {name: NodeAffinity, weight: 5}]}",
       kFilter,
       {"TaintToleration:1", "NodeAffinity:5", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1", "ImageLocality:1"}},
      {"a default named at score goes first there",
       "score: {enabled: [{name: ImageLocality, weight: 8}]}",
       kFilter,
       {"ImageLocality:8", "TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1",
        "DynamicResources:2", "NodeResourcesBalancedAllocation:1"}},
      {"overridden ones in the point's order, then multiPoint, then others",
       "score: {enabled: [{name: GPUAware, weight: 2}, {name: ImageLocality}, {name: "
       "NodeResourcesFit, weight: 6}]}",
       kFilter,
       {"ImageLocality:1", "NodeResourcesFit:6", "TaintToleration:3", "NodeAffinity:2",
        "DynamicResources:2", "NodeResourcesBalancedAllocation:1", "GPUAware:2"}},
      {"disabled at a point only",
       "score: {disabled: [{name: TaintToleration}, {name: ImageLocality}]}",
       kFilter,
       {"NodeAffinity:2", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1"}},
      {"* at a point leaves what the point names",
       "score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 3}]}",
       kFilter,
       {"NodeResourcesFit:3"}},
      {"disabled at multiPoint",
       "multiPoint: {disabled: [{name: NodeAffinity}]}",
       {"NodeUnschedulable", "NodeName", "TaintToleration", "NodePorts", "NodeResourcesFit",
        "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
        "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"},
       {"TaintToleration:3", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1", "ImageLocality:1"}},
      {"* at multiPoint starts from nothing",
       "multiPoint: {disabled: [{name: '*'}], enabled: [{name: DefaultBinder}, {name: "
       "PrioritySort}, {name: GPUAware}]}",
       {"GPUAware"},
       {"GPUAware:4"}},
      {"enabled and disabled at one point: enabled, in its own place",
       "score: {enabled: [{name: ImageLocality, weight: 2}], disabled: [{name: ImageLocality}]}",
       kFilter,
       {"TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1", "ImageLocality:2"}},
      {"unserved plugins may be disabled",
       "multiPoint: {disabled: [{name: GangScheduling}, {name: PodGroupPodsCount}]}",
       kFilter,
       {"TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1", "DynamicResources:2",
        "NodeResourcesBalancedAllocation:1", "ImageLocality:1"}},
      {"a weight at multiPoint serves a plugin that score names without one",
       "multiPoint: {enabled: [{name: GPUAware, weight: 7}]}, score: {enabled: [{name: GPUAware}]}",
       {"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
        "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
        "PodTopologySpread", "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures",
        "GPUAware"},
       {"GPUAware:4", "TaintToleration:3", "NodeAffinity:2", "NodeResourcesFit:1",
        "DynamicResources:2", "NodeResourcesBalancedAllocation:1", "ImageLocality:1"}},
  };
  for (const OrderCase& c : cases) {
    absl::StatusOr<Profiles> p =
        Resolve(absl::StrCat("profiles: [{plugins: {", c.plugins, "}}]\n"));
    ASSERT_TRUE(p.ok()) << c.what << ": " << p.status();
    EXPECT_EQ(At(*p, v1beta1::EXTENSION_POINT_FILTER), c.filter) << c.what;
    EXPECT_EQ(At(*p, v1beta1::EXTENSION_POINT_SCORE), c.score) << c.what;
    ASSERT_FALSE(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER).empty()) << c.what;
    EXPECT_EQ(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER)[0], "NotServed") << c.what;
  }
}

TEST(ResolveProfiles, NotServedGoesOnlyByName) {
  absl::StatusOr<Profiles> p =
      Resolve("profiles: [{plugins: {preFilter: {disabled: [{name: '*'}]}}}]\n");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER), ElementsAre("NotServed"));
  for (const char* set : {"preFilter", "multiPoint"}) {
    p = Resolve(
        absl::StrCat("profiles: [{plugins: {", set, ": {disabled: [{name: NotServed}]}}}]\n"));
    ASSERT_TRUE(p.ok()) << p.status();
    EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER),
                ElementsAre("NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions",
                            "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread",
                            "InterPodAffinity", "DynamicResources", "NodeDeclaredFeatures"));
  }
  p = Resolve("profiles: [{plugins: {multiPoint: {enabled: [{name: NotServed}]}}}]\n");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PRE_FILTER),
              ElementsAre("NotServed", "NodeAffinity", "NodePorts", "NodeResourcesFit",
                          "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
                          "PodTopologySpread", "InterPodAffinity", "DynamicResources",
                          "NodeDeclaredFeatures"));

  PluginCatalog without = Catalog();
  without.plugins.erase("NotServed");
  EXPECT_THAT(std::string(Resolve("", without).status().message()),
              HasSubstr("no host serves NotServed"));
  EXPECT_TRUE(
      Resolve("profiles: [{plugins: {preFilter: {disabled: [{name: NotServed}]}}}]\n", without)
          .ok());
}

TEST(ResolveProfiles, SeveralProfilesEachWithTheirOwn) {
  absl::StatusOr<Profiles> p = Resolve(R"(
percentageOfNodesToScore: 40
profiles:
- schedulerName: a
  percentageOfNodesToScore: 100
  plugins: {permit: {enabled: [{name: Gang}]}}
  pluginConfig:
  - {name: Gang, args: {timeoutSeconds: 5}}
  - {name: OtherSort, args: {filterTimeout: 5s}}
- schedulerName: b
)");
  ASSERT_TRUE(p.ok()) << p.status();
  ASSERT_THAT(p->profiles, SizeIs(2));
  EXPECT_EQ(p->profiles[0].percentage_of_nodes_to_score, 100);
  EXPECT_EQ(p->profiles[1].percentage_of_nodes_to_score, 40);
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PERMIT, 0), ElementsAre("Gang"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PERMIT, 1), IsEmpty());
  ASSERT_THAT(p->profiles[0].args, SizeIs(1));
  EXPECT_EQ(p->profiles[0].args[0].args_json, R"({"timeoutSeconds":5})");
  EXPECT_THAT(p->warnings,
              ElementsAre(HasSubstr("f.yaml:11:23: profiles[0].pluginConfig[1].args: plugin "
                                    "\"OtherSort\" does not run in this profile")));
}

struct ErrorCase {
  const char* body;
  const char* error;
};

TEST(ResolveProfiles, Errors) {
  const ErrorCase cases[] = {
      {"profiles: [{plugins: {permit: {enabled: [{name: GangScheduling}]}}}]\n",
       "f.yaml:3:42: profiles[0].plugins.permit.enabled[0]: plugin \"GangScheduling\" is not "
       "supported yet; remove it here (NotServed rejects pods that need it)"},
      {"profiles: [{plugins: {multiPoint: {enabled: [{name: GPUAwere}]}}}]\n",
       "no host serves plugin \"GPUAwere\" of profile \"default-scheduler\"; did you mean "
       "GPUAware?"},
      {"profiles: [{plugins: {multiPoint: {enabled: [{name: Zebra}]}}}]\n",
       "no host serves plugin \"Zebra\" of profile \"default-scheduler\"; hosts serve "
       "DefaultBinder, DefaultPreemption, DynamicResources, GPUAware, Gang, "},
      {"profiles: [{plugins: {score: {enabled: [{name: Gang}]}}}]\n",
       "f.yaml:3:41: profiles[0].plugins.score.enabled[0]: plugin \"Gang\" does not implement "
       "score; it implements permit"},
      {"profiles: [{plugins: {permit: {enabled: [{name: Gang}, {name: Gang}]}}}]\n",
       "f.yaml:3:56: profiles[0].plugins.permit.enabled[1]: plugin \"Gang\" is enabled twice"},
      {"profiles: [{plugins: {multiPoint: {enabled: [{name: Gang}, {name: Gang}]}}}]\n",
       "f.yaml:3:60: profiles[0].plugins.multiPoint.enabled[1]: plugin \"Gang\" is enabled twice"},
      {"profiles: [{plugins: {multiPoint: {disabled: [{name: PrioritySort}]}}}]\n",
       "f.yaml:3:12: profiles[0]: only one queue sort plugin required for profile with scheduler "
       "name "
       "\"default-scheduler\", but got 0"},
      {"profiles: [{plugins: {queueSort: {enabled: [{name: OtherSort}]}}}]\n",
       "f.yaml:3:12: profiles[0]: only one queue sort plugin required for profile with scheduler "
       "name "
       "\"default-scheduler\", but got 2: PrioritySort, OtherSort"},
      {"profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: {enabled: [{name: "
       "OtherSort}], disabled: "
       "[{name: PrioritySort}]}}}]\n",
       "f.yaml:3:32: profiles[1]: different queue sort plugins for profile \"b\": \"OtherSort\", "
       "first: \"PrioritySort\""},
      {"profiles: [{schedulerName: a}, {schedulerName: b, pluginConfig: [{name: PrioritySort, "
       "args: {x: 1}}]}]\n",
       "f.yaml:3:32: profiles[1]: different queue sort plugin args for profile \"b\""},
      {"profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n",
       "f.yaml:3:12: profiles[0]: at least one bind plugin is needed for profile with scheduler "
       "name \"default-scheduler\""},
      {"---\napiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\nfailurePolicies: "
       "[{plugin: Gong, point: "
       "permit, policy: FailOpen}]\n",
       "f.yaml:6:19: failurePolicies[0]: no host serves plugin \"Gong\"; did you mean Gang?"},
      {"---\napiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\nfailurePolicies: "
       "[{plugin: Gang, point: "
       "score, policy: FailOpen}]\n",
       "f.yaml:6:19: failurePolicies[0]: plugin \"Gang\" does not implement score; it implements "
       "permit"},
  };
  for (const ErrorCase& c : cases) {
    absl::Status status = Resolve(c.body).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.body;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error)) << c.body;
  }
  // One problem, however many are missing, and none that only follows from it.
  EXPECT_EQ(std::string(Resolve("", PluginCatalog()).status().message()),
            "f.yaml: profiles[0]: no host serves these default plugins of profile "
            "\"default-scheduler\": SchedulingGates, PrioritySort, NodeUnschedulable, NodeName, "
            "TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, "
            "NodeVolumeLimits, VolumeBinding, VolumeZone, PodTopologySpread, InterPodAffinity, "
            "DynamicResources, DefaultPreemption, NodeResourcesBalancedAllocation, ImageLocality, "
            "DefaultBinder, NodeDeclaredFeatures");
}

TEST(ResolveProfiles, WarnsAboutUnknownDisabledPlugins) {
  absl::StatusOr<Profiles> p =
      Resolve("profiles: [{plugins: {score: {disabled: [{name: ImageLocalty}]}}}]\n");
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(p->warnings, ElementsAre(HasSubstr(
                               "unknown plugin \"ImageLocalty\": disabling it has no effect; did "
                               "you mean ImageLocality?")));
}

// Plugins at the points of groups, beside the default ones.
PluginCatalog CatalogWithGroupPoints() {
  PluginCatalog catalog = Catalog();
  v1beta1::GetHostInfoResponse racks;
  AddPlugin(&racks, "Racks", {v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE});
  AddPlugin(&racks, "Rows", {v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE});
  AddPlugin(&racks, "Tight", {v1beta1::EXTENSION_POINT_PLACEMENT_SCORE}, 6);
  AddPlugin(&racks, "Cheap", {v1beta1::EXTENSION_POINT_PLACEMENT_SCORE});
  AddPlugin(&racks, "Evict", {v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER});
  catalog.Add(racks);
  return catalog;
}

TEST(ResolveProfiles, PointsOfGroups) {
  absl::StatusOr<Profiles> p = Resolve(
      "profiles: [{plugins: {placementGenerate: {enabled: [{name: Racks}]}, placementScore: "
      "{enabled: [{name: Cheap, weight: 3}, {name: Tight}]}, podGroupPostFilter: {enabled: "
      "[{name: Evict}]}}}]\n",
      CatalogWithGroupPoints());
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE), ElementsAre("Racks"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_PLACEMENT_SCORE), ElementsAre("Cheap:3", "Tight:6"));
  EXPECT_THAT(At(*p, v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER), ElementsAre("Evict"));
  EXPECT_THAT(p->warnings, IsEmpty());
}

TEST(ResolveProfiles, OneGeneratorOfPlacementsAtMost) {
  const absl::Status status =
      Resolve(
          "profiles: [{plugins: {placementGenerate: {enabled: [{name: Racks}, {name: Rows}]}}}]\n",
          CatalogWithGroupPoints())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr("f.yaml:3:12: profiles[0]: at most one placement generate plugin is allowed "
                "for profile with scheduler name \"default-scheduler\", but got 2"));
}

TEST(ResolveProfiles, WarnsAboutScoresWithoutPlacements) {
  absl::StatusOr<Profiles> p =
      Resolve("profiles: [{plugins: {placementScore: {enabled: [{name: Tight}]}}}]\n",
              CatalogWithGroupPoints());
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_THAT(p->warnings,
              ElementsAre("f.yaml:3:50: profiles[0].plugins.placementScore.enabled[0]: plugins at "
                          "placementScore have no effect without a plugin at placementGenerate"));
}

TEST(PluginCatalog, JoinsHosts) {
  PluginCatalog catalog = Catalog();
  EXPECT_THAT(catalog.plugins["Gang"].points,
              ElementsAre(v1beta1::EXTENSION_POINT_PERMIT));  // 99 is from a later contract
  v1beta1::GetHostInfoResponse other;
  AddPlugin(&other, "Gang", {v1beta1::EXTENSION_POINT_RESERVE});
  catalog.Add(other);
  EXPECT_THAT(catalog.plugins["Gang"].points,
              ElementsAre(v1beta1::EXTENSION_POINT_RESERVE, v1beta1::EXTENSION_POINT_PERMIT));
}

TEST(EffectiveConfigYaml, CanBeReadBackUnchanged) {
  absl::StatusOr<Config> config = ParseConfig(R"(
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "no", qps: 0.5}
profiles:
- schedulerName: "5"
  plugins: {score: {enabled: [{name: GPUAware, weight: 3}], disabled: [{name: ImageLocality}]}}
  pluginConfig: [{name: GPUAware, args: {s: "1", n: 1.5, l: [a, "true"], "q\"": "x\ny"}}]
---
apiVersion: config.outboard.dev/v1alpha1
kind: ShimConfiguration
unknownProfiles: {prefixes: ["no"]}
hosts: [{name: h, address: "unix:/s"}, {name: t, address: "h:1", tls: {caFile: a, certFile: b, keyFile: c}}]
deadlines: {cycle: 1.5s}
failurePolicies: [{plugin: GPUAware, point: filter, policy: FailOpen}]
metrics: {workloadTypeLabel: team, workloadTypes: ["1", etl], jobNameLabels: []}
extender: {address: "127.0.0.1:1", profile: "5", schedulerNames: ["6"], bindDeadline: 1m, maxBinds: 7}
)",
                                              "f.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  absl::StatusOr<Profiles> profiles = ResolveProfiles(*config, Catalog());
  ASSERT_TRUE(profiles.ok()) << profiles.status();
  for (const Profiles* resolved :
       {static_cast<const Profiles*>(nullptr), const_cast<const Profiles*>(&*profiles)}) {
    const std::string yaml = EffectiveConfigYaml(*config, resolved);
    absl::StatusOr<Config> again = ParseConfig(yaml, "again.yaml");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << yaml;
    EXPECT_EQ(again->scheduler.client_connection.kubeconfig, "no");
    EXPECT_EQ(again->scheduler.client_connection.qps, 0.5);
    EXPECT_EQ(again->scheduler.profiles[0].scheduler_name, "5");
    EXPECT_EQ(again->scheduler.profiles[0].plugin_config[0].args_json,
              R"({"s":"1","n":1.5,"l":["a","true"],"q\"":"x\u000ay"})");
    EXPECT_EQ(again->shim.deadlines.cycle, absl::Milliseconds(1500));
    EXPECT_EQ(again->shim.hosts[1].tls->cert_file, "b");
    EXPECT_EQ(again->shim.metrics.type_label, "team");
    EXPECT_THAT(again->shim.unknown_profiles.prefixes, ElementsAre("no"));
    EXPECT_THAT(again->shim.metrics.types, ElementsAre("1", "etl"));
    EXPECT_THAT(again->shim.metrics.job_labels, IsEmpty());
    EXPECT_EQ(again->shim.extender, config->shim.extender);
    if (resolved == nullptr) continue;
    absl::StatusOr<Profiles> same = ResolveProfiles(*again, Catalog());
    ASSERT_TRUE(same.ok()) << same.status() << "\n" << yaml;
    EXPECT_EQ(same->profiles[0].points, profiles->profiles[0].points) << yaml;
  }
}

}  // namespace
}  // namespace outboard::config::profiles_test
