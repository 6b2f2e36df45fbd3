#include "plugins/plans_dice.h"

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::plans {

using sdk::testing::NodeBuilder;
using sdk::testing::PodBuilder;

std::vector<std::string> DefaultPlugins() {
  return {"NodeUnschedulable",
          "NodeName",
          "TaintToleration",
          "NodeAffinity",
          "NodePorts",
          "NodeResourcesFit",
          "VolumeRestrictions",
          "NodeVolumeLimits",
          "VolumeBinding",
          "VolumeZone",
          "PodTopologySpread",
          "InterPodAffinity",
          "NodeResourcesBalancedAllocation",
          "ImageLocality",
          "DynamicResources"};
}

std::vector<std::string> AllPlugins() {
  std::vector<std::string> plugins = DefaultPlugins();
  for (const char* own :
       {"GPUAware", "CostOptimized", "GPUModelMatch", "GPUPacking", "TopologyAwareGPUGate",
        "Objectives", "TrainingJobPlacement", "WorkloadStrategyScorer", "WorkloadTypeFilter"})
    plugins.push_back(own);
  return plugins;
}

v1beta1::Node RandomNode(Dice& dice, const std::string& name) {
  NodeBuilder node(name);
  node.Allocatable({{"cpu", absl::StrCat(1 + dice.Below(8))},
                    {"memory", absl::StrCat(1 + dice.Below(8), "Gi")},
                    {"pods", absl::StrCat(2 + dice.Below(9))},
                    {"nvidia.com/gpu", absl::StrCat(dice.Below(9))}});
  node.Label("kubernetes.io/hostname", name);
  node.Label("zone", dice.Pick({"a", "b", "c"}));
  node.Label("nvidia.com/gpu.product", dice.Pick({"A100", "H100"}));
  node.Label("nvidia.com/gpu.memory", "81920");
  node.Label("node-cost-per-hour", dice.Pick({"1", "2.5", "3"}));
  node.Label("nvlink-fabric-id", dice.Pick({"f1", "f2"}));
  if (dice.Flip(5)) node.Taint("t", "v", v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  if (dice.Flip(6)) node.Unschedulable();
  if (dice.Flip()) node.Image("image-a:1", 500 << 20);
  return node;
}

v1beta1::Pod RandomPod(Dice& dice, const std::string& name) {
  PodBuilder pod(name);
  pod.Requests({{"cpu", dice.Pick({"0", "250m", "1", "2"})},
                {"memory", dice.Pick({"0", "256Mi", "1Gi"})},
                {"nvidia.com/gpu", dice.Pick({"0", "0", "1", "2"})}});
  pod.proto().mutable_containers(0)->set_image(dice.Pick({"image-a:1", "image-b:1"}));
  pod.Label("app", dice.Pick({"db", "web"}));
  if (dice.Flip(3)) pod.Label("workload-type", dice.Pick({"training", "inference"}));
  if (dice.Flip(3)) pod.Label("training-job-id", dice.Pick({"j1", "j2"}));
  if (dice.Flip(4)) pod.HostPort(80);
  if (dice.Flip(4)) pod.NodeSelector("zone", dice.Pick({"a", "b"}));
  if (dice.Flip(4))
    pod.Toleration("t", v1beta1::Toleration::OPERATOR_EXISTS, "",
                   v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  pod.Priority(dice.Below(3));
  if (dice.Flip(3)) {
    auto* constraint = pod.proto().add_topology_spread_constraints();
    constraint->set_max_skew(1 + dice.Below(2));
    constraint->set_topology_key(dice.Pick({"zone", "kubernetes.io/hostname"}));
    constraint->set_when_unsatisfiable(
        dice.Flip() ? v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE
                    : v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
    (*constraint->mutable_label_selector()->mutable_match_labels())["app"] =
        dice.Pick({"db", "web"});
  }
  if (dice.Flip(3)) {
    auto* affinity = dice.Flip() ? pod.proto().mutable_affinity()->mutable_pod_affinity()
                                 : pod.proto().mutable_affinity()->mutable_pod_anti_affinity();
    v1beta1::PodAffinityTerm* term =
        dice.Flip() ? affinity->add_required_during_scheduling_ignored_during_execution()
                    : affinity->add_preferred_during_scheduling_ignored_during_execution()
                          ->mutable_pod_affinity_term();
    term->set_topology_key(dice.Pick({"zone", "kubernetes.io/hostname"}));
    (*term->mutable_label_selector()->mutable_match_labels())["app"] = dice.Pick({"db", "web"});
  }
  for (auto& preferred : *pod.proto()
                              .mutable_affinity()
                              ->mutable_pod_affinity()
                              ->mutable_preferred_during_scheduling_ignored_during_execution())
    preferred.set_weight(1 + dice.Below(100));
  for (auto& preferred : *pod.proto()
                              .mutable_affinity()
                              ->mutable_pod_anti_affinity()
                              ->mutable_preferred_during_scheduling_ignored_during_execution())
    preferred.set_weight(1 + dice.Below(100));
  pod.proto().set_creation_unix_seconds(dice.Below(1000));
  return pod;
}

}  // namespace outboard::plans
