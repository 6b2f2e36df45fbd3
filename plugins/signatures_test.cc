// Compares each plugin's declared signature with its answers for random pods: pods that agree only
// in the declared parts must get equal verdicts and scores.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "plugin_host/sdk/pod_parts.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/builtin_plugins.h"
#include "plugins/plans_dice.h"

namespace outboard {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

constexpr int kClusters = 40;
constexpr int kPairs = 6;

// Everything that a plugin may read, from small sets of values, so that many of them matter.
class Dice : public plans::Dice {
 public:
  using plans::Dice::Dice;

  v1beta1::Node Node(const std::string& name) {
    NodeBuilder node(name);
    node.Allocatable({{"cpu", absl::StrCat(1 + Below(8))},
                      {"memory", absl::StrCat(1 + Below(8), "Gi")},
                      {"pods", "10"},
                      {"nvidia.com/gpu", absl::StrCat(Below(9))}});
    node.Label("kubernetes.io/hostname", name);
    node.Label("zone", Pick({"a", "b"}));
    node.Label("topology.kubernetes.io/region", Pick({"eu", "us"}));
    node.Label("node-cost-per-hour", Pick({"1", "2", "3"}));
    node.Label("nvidia.com/gpu.product", Pick({"A100", "H100"}));
    node.Label("nvidia.com/gpu.memory", Pick({"16384", "81920"}));
    node.Label("nvidia.com/gpu.numa", Pick({"0", "1"}));
    node.Label("nvidia.com/gpu-topology", Pick({"nvlink", "pcie"}));
    node.Label("nvlink-fabric-id", Pick({"f1", "f2"}));
    node.Label("data.outboard/d", Pick({"true", "false"}));
    if (Flip(3)) node.Taint("t", "v", v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    if (Flip(4)) node.Unschedulable();
    if (Flip()) node.Image("image-a:1", 500 << 20);
    return node;
  }

  v1beta1::Pod Pod(const std::string& name, const std::vector<std::string>& labels,
                   const std::vector<std::string>& annotations) {
    PodBuilder pod(name, Pick({"default", "other"}));
    pod.Requests({{"cpu", absl::StrCat(Below(3))},
                  {"memory", Pick({"0", "1Gi", "4Gi"})},
                  {"nvidia.com/gpu", Pick({"0", "1", "2", "4"})}});
    v1beta1::Container* container = pod.proto().mutable_containers(0);
    container->set_image(Pick({"image-a:1", "image-b:1", "vllm/vllm-openai:1"}));
    if (Flip(3)) container->add_command(Pick({"torchrun", "vllm"}));
    if (Flip(3)) container->add_args("--tensor-parallel-size=2");
    if (Flip(3)) pod.HostPort(80);
    for (const std::string& key : labels) {
      if (Flip())
        pod.Label(key, Pick({"training", "inference", "A100", "1", "2", "CPU-intensive",
                             "GPU-intensive", "ddp", "db"}));
    }
    for (const std::string& key : annotations) {
      if (Flip())
        pod.Annotation(key, Pick({"1", "0.5", "2", "eu", "d", "cost=3", "app=db", "0",
                                  "2026-01-01T00:00:00Z", "node", "true"}));
    }
    if (Flip(3)) pod.NodeSelector("zone", Pick({"a", "b"}));
    if (Flip(3))
      pod.Toleration("t", v1beta1::Toleration::OPERATOR_EXISTS, "",
                     v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    if (Flip(4))
      pod.Toleration("t", v1beta1::Toleration::OPERATOR_LT, Pick({"1", "2"}),
                     v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    if (Flip(4))
      pod.Toleration("node.kubernetes.io/unschedulable", v1beta1::Toleration::OPERATOR_EXISTS, "",
                     v1beta1::TAINT_EFFECT_NO_SCHEDULE);
    pod.Priority(Below(3));
    if (Flip(3)) Spread(&pod.proto());
    if (Flip(3)) Affinity(&pod.proto());
    if (Flip(3)) {
      v1beta1::ControllerReference* owner = pod.proto().mutable_controller();
      owner->set_api_version(Pick({"batch/v1", "kubeflow.org/v1"}));
      owner->set_kind(Pick({"Job", "PyTorchJob", "Deployment"}));
      owner->set_name("owner");
      owner->set_uid("owner");
    }
    if (Flip(4)) {
      v1beta1::Volume* volume = pod.proto().add_volumes();
      volume->set_name("v");
      volume->set_source(Pick({"persistentVolumeClaim", "ephemeral", "emptyDir"}));
      if (volume->source() == "persistentVolumeClaim") volume->set_claim_name(Pick({"c", "d"}));
    }
    if (Flip(6)) pod.proto().add_claims()->set_name("claim");
    if (Flip(6)) pod.proto().set_pod_group_name("group");
    if (Flip(6)) pod.proto().set_service_account_name(Pick({"default", "robot"}));
    if (Flip(6)) pod.proto().set_priority_class_name("high");
    if (Flip(6)) pod.proto().set_runtime_class_name("gvisor");
    if (Flip(6)) pod.proto().add_conditions()->set_type("Ready");
    if (Flip(4)) pod.proto().add_required_node_features("RestartAllContainersOnContainerExits");
    pod.proto().set_creation_unix_seconds(Below(1000));
    return pod;
  }

 private:
  void Spread(v1beta1::Pod* pod) {
    v1beta1::TopologySpreadConstraint* constraint = pod->add_topology_spread_constraints();
    constraint->set_max_skew(1);
    constraint->set_topology_key("zone");
    constraint->set_when_unsatisfiable(
        Flip() ? v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_DO_NOT_SCHEDULE
               : v1beta1::TopologySpreadConstraint::WHEN_UNSATISFIABLE_SCHEDULE_ANYWAY);
    (*constraint->mutable_label_selector()->mutable_match_labels())["app"] = "db";
  }
  void Affinity(v1beta1::Pod* pod) {
    auto* affinity = Flip() ? pod->mutable_affinity()->mutable_pod_affinity()
                            : pod->mutable_affinity()->mutable_pod_anti_affinity();
    v1beta1::PodAffinityTerm* term =
        affinity->add_required_during_scheduling_ignored_during_execution();
    term->set_topology_key("zone");
    (*term->mutable_label_selector()->mutable_match_labels())["app"] = "db";
  }
};

// A plugin's complete answer for a pod.
std::string Said(PluginHarness* harness, const sdk::PluginDescriptor& descriptor,
                 const v1beta1::Pod& pod) {
  const auto at = [&](sdk::ExtensionPoint point) {
    const auto& points = descriptor.extension_points;
    return std::find(points.begin(), points.end(), point) != points.end();
  };
  std::string said;
  if (at(v1beta1::EXTENSION_POINT_PRE_FILTER)) {
    const PluginHarness::PreFilterOutcome outcome = harness->PreFilter(pod);
    absl::StrAppend(&said, "preFilter ", static_cast<int>(outcome.verdict.code()), " ",
                    absl::StrJoin(outcome.verdict.reasons(), ","), " ",
                    outcome.node_names ? absl::StrJoin(*outcome.node_names, ",") : "", "\n");
    if (outcome.verdict.rejected()) return said;
  }
  if (at(v1beta1::EXTENSION_POINT_FILTER)) {
    for (const auto& [node, verdict] : harness->Filter(pod))
      absl::StrAppend(&said, node, " ", static_cast<int>(verdict.code()), " ",
                      absl::StrJoin(verdict.reasons(), ","), "\n");
  }
  if (at(v1beta1::EXTENSION_POINT_SCORE)) {
    const auto scores = harness->Score(pod);
    if (!scores.ok()) return said + scores.status().ToString();
    for (const auto& [node, score] : *scores) absl::StrAppend(&said, node, " ", score, "\n");
  }
  return said;
}

TEST(Signatures, DeclaredFieldsOfPodsAreParts) {
  const std::vector<std::string> signature = sdk::SignedParts(
      {"Pod.metadata.annotations['a']", "Pod.spec.serviceAccountName", "Pod.spec.priorityClassName",
       "Pod.spec.runtimeClassName", "Pod.status.conditions['Ready']", "Node.status.capacity"},
      {"spec.affinity"});
  const auto parts = sdk::PodParts::Parse(signature);
  ASSERT_TRUE(parts.ok()) << parts.status();
  v1beta1::Pod pod;
  (*pod.mutable_annotations())["a"] = "1";
  pod.set_service_account_name("robot");
  pod.set_priority_class_name("high");
  pod.set_runtime_class_name("gvisor");
  pod.add_conditions()->set_type("Ready");
  v1beta1::Pod copy;
  parts->Copy(pod, &copy);
  EXPECT_EQ(copy.SerializeAsString(), pod.SerializeAsString());
}

TEST(Signatures, PodsThatAgreeInThemGetTheSameAnswers) {
  sdk::PluginRegistry registry;
  ASSERT_TRUE(RegisterBuiltinPlugins(&registry).ok());
  for (const auto& [name, descriptor] : registry.descriptors()) {
    bool signs = false;
    for (const sdk::ExtensionPoint point : descriptor.extension_points) {
      signs |= point == v1beta1::EXTENSION_POINT_PRE_FILTER ||
               point == v1beta1::EXTENSION_POINT_FILTER ||
               point == v1beta1::EXTENSION_POINT_PRE_SCORE ||
               point == v1beta1::EXTENSION_POINT_SCORE;
    }
    if (!signs) continue;
    if (name == "Backfill") {
      // It depends on who is first in line, so no two pods are equivalent.
      EXPECT_FALSE(descriptor.signature.has_value());
      continue;
    }
    ASSERT_TRUE(descriptor.signature.has_value()) << name << " does not declare what it reads";
    const sdk::PodParts parts = *sdk::PodParts::Parse(*descriptor.signature);
    // Keys that this plugin reads, so that they occur often; and some that other plugins read.
    std::vector<std::string> labels = {"app", "workload-type", "licence.outboard/x",
                                       "training-job-id", "tensor-parallel-size"};
    for (absl::string_view path : *descriptor.signature) {
      if (absl::ConsumePrefix(&path, "metadata.labels['") && absl::ConsumeSuffix(&path, "']"))
        labels.emplace_back(path);
    }
    std::vector<std::string> annotations = {"outboard/objectives"};
    for (absl::string_view path : descriptor.needed_fields) {
      if (absl::ConsumePrefix(&path, "Pod.metadata.annotations['") &&
          absl::ConsumeSuffix(&path, "']"))
        annotations.emplace_back(path);
    }
    int differ = 0;
    for (int cluster = 0; cluster < kClusters; ++cluster) {
      Dice dice(static_cast<uint64_t>(cluster) + 1);
      auto harness = PluginHarness::Create(
          descriptor,
          name == "GPULoad" ? R"({"prometheus": {"address": "http://127.0.0.1:9"}})" : "");
      ASSERT_TRUE(harness.ok()) << name << ": " << harness.status();
      for (int i = 0; i < 5; ++i) (*harness)->AddNode(dice.Node(absl::StrCat("n", i)));
      for (int i = 0; i < 6; ++i) {
        v1beta1::Pod pod = dice.Pod(absl::StrCat("placed", i), labels, annotations);
        pod.set_node_name(absl::StrCat("n", dice.Below(5)));
        (*harness)->AddPod(pod);
      }
      std::string last;
      for (int pair = 0; pair < kPairs; ++pair) {
        v1beta1::Pod one = dice.Pod(absl::StrCat("one", pair), labels, annotations);
        // For other plugins, a pod that names a node runs there.
        if (name == "NodeName" && dice.Flip()) one.set_node_name("n0");
        v1beta1::Pod other = dice.Pod(absl::StrCat("other", pair), labels, annotations);
        parts.Copy(one, &other);
        const std::string said = Said(harness->get(), descriptor, one);
        (*harness)->RemovePod(one.uid());
        const std::string of_other = Said(harness->get(), descriptor, other);
        (*harness)->RemovePod(other.uid());
        ASSERT_EQ(said, of_other) << name << ", cluster " << cluster << "\n"
                                  << one.DebugString() << "\n"
                                  << other.DebugString();
        differ += pair > 0 && said != last;
        last = said;
      }
    }
    // Without a difference the test proves nothing: the plugin must distinguish some pods. GPULoad
    // has no data here.
    if (descriptor.signature->empty() || name == "GPULoad") continue;
    EXPECT_GT(differ, 0) << name << " answered the same for all pods";
  }
}

}  // namespace
}  // namespace outboard
