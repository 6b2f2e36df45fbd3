// Every builtin plugin at every subset of its extension points, on random clusters. A host either
// refuses the subset when it is configured, or the profile works: no attempt ends with an error,
// the shim refuses no answer, no gang is split, and the host is called to the end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "integration/simulator/points/points_run.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugins/absurd_input_rules.h"
#include "plugins/builtin_plugins.h"
#include "plugins/plans_dice.h"

namespace outboard::points {
namespace {

using plans::Dice;
using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

constexpr char kGangs[] = "AtomicReplicaCoordinator";
constexpr char kFit[] = "NodeResourcesFit";

#ifdef OUTBOARD_SANITIZED
constexpr uint64_t kClusters = 1;
#else
constexpr uint64_t kClusters = 3;
#endif

const sdk::PluginRegistry& Builtins() {
  static const sdk::PluginRegistry& registry = *[] {
    auto* made = new sdk::PluginRegistry();
    EXPECT_TRUE(RegisterBuiltinPlugins(made).ok());
    return made;
  }();
  return registry;
}

Points PointsOf(const std::string& plugin) {
  const auto& points = Builtins().Find(plugin)->extension_points;
  return Points(points.begin(), points.end());
}

// All of them, except the empty one.
std::vector<Points> SubsetsOf(const Points& points) {
  std::vector<Points> subsets = {{}};
  for (const v1beta1::ExtensionPoint point : points) {
    const size_t size = subsets.size();
    for (size_t i = 0; i < size; ++i) {
      subsets.push_back(subsets[i]);
      subsets.back().insert(point);
    }
  }
  subsets.erase(subsets.begin());
  return subsets;
}

std::string Text(const std::string& plugin, const Points& points) {
  return absl::StrCat(plugin, " at ", absl::StrJoin(points, "+", [](std::string* out, auto point) {
                        absl::StrAppend(out, ConfigName(point));
                      }));
}

// Some of the labels and annotations that plugins read, readable or not.
template <typename Map>
void FillValues(Dice& dice, absurd::Where where, Map* values) {
  for (const absurd::Rule& rule : absurd::Rules()) {
    // Gangs are the test's own.
    if (rule.where != where || absl::StrContains(rule.plugin, kGangs) || !dice.Flip(4)) continue;
    const std::vector<std::string>& readable = rule.grammar.good;
    (*values)[rule.key] =
        readable.empty() || dice.Flip(4) ? dice.Pick(absurd::AbsurdValues()) : dice.Pick(readable);
  }
}

// A member of a gang, in one of the dialects without objects.
v1beta1::Pod Member(const std::string& gang, int dialect, int min, int i, int gpus) {
  PodBuilder pod(absl::StrCat(gang, "-", i));
  pod.Requests({{"cpu", "1"}, {"nvidia.com/gpu", absl::StrCat(gpus)}}).Priority(10);
  const std::string size = absl::StrCat(min);
  if (dialect == 0) {
    pod.Label("job-name", gang).Annotation("min-replicas", size);
  } else if (dialect == 1) {
    pod.Annotation("gang.scheduling.koordinator.sh/name", gang)
        .Annotation("gang.scheduling.koordinator.sh/min-available", size);
  } else {
    pod.Label("pod-group.scheduling.sigs.k8s.io/name", gang)
        .Label("pod-group.scheduling.sigs.k8s.io/min-available", size);
  }
  return pod;
}

// Two nodes with eight GPUs and some random ones with none; three gangs of three, of which one
// fits, one is larger than the nodes, and one lacks a member; and other pods.
Cluster MakeCluster(uint64_t seed) {
  Dice dice(seed);
  Cluster cluster;
  for (const char* name : {"big-0", "big-1"}) {
    cluster.nodes.push_back(
        NodeBuilder(name)
            .Allocatable(
                {{"cpu", "32"}, {"memory", "64Gi"}, {"pods", "50"}, {"nvidia.com/gpu", "8"}})
            .Label("kubernetes.io/hostname", name)
            .Label("zone", "a")
            .Build());
  }
  for (int i = 0, n = 1 + dice.Below(3); i < n; ++i) {
    v1beta1::Node node = plans::RandomNode(dice, absl::StrCat("n", i));
    node.mutable_allocatable()->mutable_scalar()->erase("nvidia.com/gpu");
    FillValues(dice, absurd::Where::kNodeLabel, node.mutable_labels());
    FillValues(dice, absurd::Where::kNodeAnnotation, node.mutable_annotations());
    cluster.nodes.push_back(std::move(node));
  }
  const auto add_gang = [&](const std::string& name, int members, int gpus, bool fits) {
    const int dialect = dice.Below(3);
    cluster.gangs[name] = {3, fits};
    for (int i = 0; i < members; ++i) {
      cluster.pending.push_back(Member(name, dialect, 3, i, gpus));
      cluster.gang_of[cluster.pending.back().uid()] = name;
    }
  };
  add_gang("fits", 3, 2, true);
  add_gang("large", 3, 8, false);
  add_gang("short", 2, 1, false);
  cluster.pending.push_back(PodBuilder("plain").Requests({{"cpu", "100m"}}).Build());
  for (int i = 0, n = 3 + dice.Below(4); i < n; ++i) {
    v1beta1::Pod pod = plans::RandomPod(dice, absl::StrCat(i < 2 ? "running-" : "other-", i));
    for (v1beta1::Container& container : *pod.mutable_containers())
      container.mutable_requests()->mutable_scalar()->erase("nvidia.com/gpu");
    FillValues(dice, absurd::Where::kPodLabel, pod.mutable_labels());
    FillValues(dice, absurd::Where::kPodAnnotation, pod.mutable_annotations());
    if (i < 2) {
      pod.set_node_name(cluster.nodes.back().name());
      cluster.running.push_back(std::move(pod));
    } else {
      cluster.pending.push_back(std::move(pod));
    }
  }
  return cluster;
}

// The plugin at these points, after the check of resources and, if wanted, all of the gangs'
// plugin.
std::vector<PluginAtPoints> Profile(const std::string& plugin, const Points& points,
                                    bool with_gangs) {
  std::vector<PluginAtPoints> plugins;
  if (plugin != kFit) plugins.push_back({kFit, PointsOf(kFit)});
  if (with_gangs && plugin != kGangs) plugins.push_back({kGangs, PointsOf(kGangs)});
  plugins.push_back({plugin, points});
  return plugins;
}

// Subsets that cannot work: without Permit a part of a gang would be bound; and some of
// kube-scheduler's plugins fail at a point without the one at which they prepare it, there too.
bool CannotWork(const std::string& plugin, const Points& points) {
  if (plugin == kGangs) return !points.contains(v1beta1::EXTENSION_POINT_PERMIT);
  struct Pair {
    const char* plugin;
    v1beta1::ExtensionPoint point, earlier;
  };
  static const std::vector<Pair>& pairs = *[] {
    auto* made = new std::vector<Pair>();
    for (const char* name :
         {"DynamicResources", "InterPodAffinity", "NodeDeclaredFeatures", "NodePorts",
          "NodeResourcesFit", "PodTopologySpread", "VolumeRestrictions"})
      made->push_back({name, v1beta1::EXTENSION_POINT_FILTER, v1beta1::EXTENSION_POINT_PRE_FILTER});
    for (const char* name : {"InterPodAffinity", "PodTopologySpread"})
      made->push_back({name, v1beta1::EXTENSION_POINT_SCORE, v1beta1::EXTENSION_POINT_PRE_SCORE});
    for (const auto point : {v1beta1::EXTENSION_POINT_POST_FILTER, v1beta1::EXTENSION_POINT_SCORE})
      made->push_back({"DynamicResources", point, v1beta1::EXTENSION_POINT_PRE_FILTER});
    return made;
  }();
  return std::any_of(pairs.begin(), pairs.end(), [&](const Pair& pair) {
    return plugin == pair.plugin && points.contains(pair.point) && !points.contains(pair.earlier);
  });
}

// What is wrong with the subset on some cluster; empty: nothing.
std::string FaultOf(const std::string& plugin, const Points& points) {
  const bool is_refused = CannotWork(plugin, points);
  for (const bool with_gangs : {false, true}) {
    for (uint64_t seed = 1; seed <= kClusters; ++seed) {
      const std::string where = absl::StrCat("cluster ", seed, with_gangs ? " with gangs: " : ": ");
      const Outcome outcome =
          Run(Builtins(), Profile(plugin, points, with_gangs), MakeCluster(seed));
      if (outcome.refused.empty() == is_refused)
        return absl::StrCat(where, is_refused ? "not refused" : outcome.refused);
      if (!outcome.faults.empty()) return absl::StrCat(where, absl::StrJoin(outcome.faults, "; "));
      if (!is_refused && !outcome.bound.contains("default/plain")) {
        const auto message = outcome.messages.find("default/plain");
        return absl::StrCat(where, "a plain pod waits: ",
                            message == outcome.messages.end() ? "no attempt" : message->second);
      }
    }
  }
  return "";
}

class ExtensionPoints : public ::testing::TestWithParam<std::string> {};

TEST_P(ExtensionPoints, EverySubsetWorksOrIsRefused) {
  for (const Points& points : SubsetsOf(PointsOf(GetParam()))) {
    const std::string fault = FaultOf(GetParam(), points);
    EXPECT_EQ(fault, "") << Text(GetParam(), points);
  }
}

std::vector<std::string> PluginNames() {
  std::vector<std::string> names;
  for (const auto& [name, descriptor] : Builtins().descriptors()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ExtensionPoints, ::testing::ValuesIn(PluginNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace outboard::points
