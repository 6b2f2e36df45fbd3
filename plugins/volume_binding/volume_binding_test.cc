#include "plugins/volume_binding/volume_binding.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_yaml.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::volume_binding {
namespace {

using sdk::Verdict;

TEST(VolumeBindingTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/volume_binding/testdata");
}

constexpr char kConflict[] = "node(s) didn't find available persistent volumes to bind";

// Two nodes, a local volume on each, a class with late binding, a class with provisioning, and
// claims of both.
class BindingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    harness_ = *sdk::testing::PluginHarness::Create(Descriptor());
    for (const char* name : {"n1", "n2"}) {
      v1beta1::Node node;
      node.set_name(name);
      node.set_uid(name);
      (*node.mutable_labels())["host"] = name;
      harness_->AddNode(node);
    }
    Set("{storageClass: {name: late, provisioner: kubernetes.io/no-provisioner, "
        "volumeBindingMode: WaitForFirstConsumer}}");
    Set("{storageClass: {name: made, provisioner: d, volumeBindingMode: WaitForFirstConsumer}}");
    SetVolume("pv1", "n1", "1", "");
    SetClaim("a", "late", "1", "");
    SetClaim("b", "late", "1", "");
    SetClaim("c", "made", "1", "");
  }

  void Set(const std::string& yaml) {
    auto object = sdk::testing::ObjectFromYaml(YAML::Load(yaml));
    ASSERT_TRUE(object.ok()) << object.status();
    harness_->AddObject(*object);
  }
  void SetVolume(const std::string& name, const std::string& node, const std::string& version,
                 const std::string& more) {
    Set(absl::StrCat("{persistentVolume: {name: ", name, ", resourceVersion: '", version,
                     "', storageClassName: late, phase: Available, capacityBytes: 1Gi, ",
                     "nodeAffinity: {nodeSelectorTerms: [{matchExpressions: ",
                     "[{key: host, operator: In, values: [", node, "]}]}]}", more, "}}"));
  }
  void SetClaim(const std::string& name, const std::string& storage_class,
                const std::string& version, const std::string& more) {
    Set(absl::StrCat("{persistentVolumeClaim: {name: ", name, ", resourceVersion: '", version,
                     "', storageClassName: ", storage_class, ", requestBytes: 1Gi", more, "}}"));
  }
  static v1beta1::Pod Pod(const std::string& name, const std::vector<std::string>& claims) {
    v1beta1::Pod pod;
    pod.set_name(name);
    pod.set_namespace_("default");
    pod.set_uid(name);
    pod.add_containers();
    for (const std::string& claim : claims) {
      v1beta1::Volume* volume = pod.add_volumes();
      volume->set_name(claim);
      volume->set_source("persistentVolumeClaim");
      volume->set_claim_name(claim);
    }
    return pod;
  }
  // The effects that Reserve returns for a pod that fits on the node.
  std::vector<v1beta1::Effect> Reserve(const v1beta1::Pod& pod, const std::string& node) {
    EXPECT_TRUE(harness_->Filter(pod).at(node).ok());
    sdk::ReserveAnswer answer;
    const Verdict verdict = harness_->Reserve(pod, node, &answer);
    EXPECT_TRUE(verdict.ok()) << ::testing::PrintToString(verdict.reasons());
    return answer.effects;
  }
  Verdict FilterOn(const v1beta1::Pod& pod, const std::string& node) {
    return harness_->Filter(pod).at(node);
  }
  static v1beta1::EffectResult Result(const std::string& version) {
    v1beta1::EffectResult result;
    result.set_resource_version(version);
    return result;
  }
  static std::string Text(const Verdict& verdict) {
    return verdict.reasons().empty() ? "" : verdict.reasons()[0];
  }

  std::unique_ptr<sdk::testing::PluginHarness> harness_;
};

TEST_F(BindingTest, NamesWhatIsToBeWritten) {
  const auto effects = Reserve(Pod("p", {"c", "a"}), "n1");
  ASSERT_EQ(effects.size(), 2u);
  const v1beta1::BindVolume& bind = effects[0].bind_volume();
  EXPECT_EQ(bind.name(), "pv1");
  EXPECT_EQ(bind.uid(), "uid-pv1");
  EXPECT_EQ(bind.resource_version(), "1");
  EXPECT_EQ(bind.claim().name(), "a");
  EXPECT_EQ(bind.claim().uid(), "uid-a");
  EXPECT_EQ(bind.claim_resource_version(), "1");
  EXPECT_TRUE(bind.bound_by_controller());
  const v1beta1::SelectNode& select = effects[1].select_node();
  EXPECT_EQ(select.name(), "c");
  EXPECT_EQ(select.uid(), "uid-c");
  EXPECT_EQ(select.resource_version(), "1");
  EXPECT_EQ(select.node_name(), "n1");
  EXPECT_NE(effects[0].key(), effects[1].key());
}

TEST_F(BindingTest, WritesAClaimOnceThoughTwoVolumesNameIt) {
  const auto effects = Reserve(Pod("p", {"c", "c"}), "n1");
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(effects[0].select_node().name(), "c");
}

TEST_F(BindingTest, LeavesTheAnnotationOutWhereAPersonBoundThem) {
  SetVolume("pv1", "n1", "2", ", claimRef: {namespace: default, name: a}");
  const auto effects = Reserve(Pod("p", {"a"}), "n1");
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_FALSE(effects[0].bind_volume().bound_by_controller());
}

TEST_F(BindingTest, NamesNothingForBoundClaims) {
  SetClaim("a", "late", "2", ", volumeName: pv1, bindCompleted: true");
  EXPECT_TRUE(Reserve(Pod("p", {"a"}), "n1").empty());
}

TEST_F(BindingTest, CountsAVolumeAsTakenFromTheReservationOn) {
  const v1beta1::Pod first = Pod("first", {"a"});
  const v1beta1::Pod second = Pod("second", {"b"});
  const auto effects = Reserve(first, "n1");
  EXPECT_TRUE(FilterOn(second, "n1").ok()) << "the cluster cache does not have it yet";
  harness_->Place("first", v1beta1::PLACEMENT_STATE_ASSUMED, "n1", effects);
  EXPECT_EQ(Text(FilterOn(second, "n1")), kConflict);
  // Another pod with the same claim goes to the node of the volume.
  SetVolume("pv2", "n2", "1", "");
  EXPECT_TRUE(FilterOn(Pod("third", {"a"}), "n1").ok());
  EXPECT_EQ(Text(FilterOn(Pod("third", {"a"}), "n2")), kConflict);
  // The pod is unreserved.
  harness_->Place("first", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_TRUE(FilterOn(second, "n1").ok());
}

TEST_F(BindingTest, ANewerVersionOfTheVolumeCounts) {
  harness_->AddPod(Pod("first", {"a"}));
  harness_->Place("first", v1beta1::PLACEMENT_STATE_ASSUMED, "n1",
                  Reserve(Pod("first", {"a"}), "n1"));
  const v1beta1::Pod second = Pod("second", {"b"});
  SetVolume("pv1", "n1", "2", ", claimRef: {namespace: default, name: a, uid: uid-a}");
  EXPECT_EQ(Text(FilterOn(second, "n1")), kConflict);
  // The binding was removed.
  SetVolume("pv1", "n1", "3", "");
  EXPECT_TRUE(FilterOn(second, "n1").ok());
}

TEST_F(BindingTest, OtherPodsFollowAClaimToTheNodeThatWasSelected) {
  const v1beta1::Pod first = Pod("first", {"c"});
  const v1beta1::Pod second = Pod("second", {"c"});
  harness_->AddPod(first);
  harness_->Place("first", v1beta1::PLACEMENT_STATE_ASSUMED, "n2", Reserve(first, "n2"));
  EXPECT_EQ(Text(FilterOn(second, "n1")), kConflict);
  EXPECT_TRUE(FilterOn(second, "n2").ok());
  // The provisioner failed and removed the annotation.
  SetClaim("c", "made", "2", "");
  EXPECT_TRUE(FilterOn(second, "n1").ok());
  harness_->RemovePod("first");
  EXPECT_TRUE(FilterOn(second, "n1").ok());
}

TEST_F(BindingTest, RefusesToReserveWhatChangedMeanwhile) {
  const v1beta1::Pod pod = Pod("p", {"a"});
  ASSERT_TRUE(FilterOn(pod, "n1").ok());
  SetVolume("pv1", "n1", "2", ", claimRef: {namespace: default, name: b}");
  sdk::ReserveAnswer answer;
  const Verdict verdict = harness_->Reserve(pod, "n1", &answer);
  EXPECT_EQ(verdict.code(), v1beta1::CODE_ERROR);
  EXPECT_TRUE(answer.effects.empty());
}

TEST_F(BindingTest, WaitsUntilVolumeAndClaimAreBound) {
  const v1beta1::Pod pod = Pod("p", {"a"});
  const auto effects = Reserve(pod, "n1");
  const std::vector<v1beta1::EffectResult> results = {Result("10")};
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait);
  SetVolume("pv1", "n1", "10", ", claimRef: {namespace: default, name: a, uid: uid-a}");
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait);
  SetClaim("a", "late", "11", ", volumeName: pv1");
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait);
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results, absl::Seconds(600))),
            "binding volumes: context deadline exceeded");
  SetClaim("a", "late", "12", ", volumeName: pv1, bindCompleted: true");
  EXPECT_TRUE(harness_->PreBind(pod, "n1", effects, results, absl::Seconds(600)).ok());
}

TEST_F(BindingTest, ReportsWhyAVolumeCannotBeBound) {
  const v1beta1::Pod pod = Pod("p", {"a"});
  const auto effects = Reserve(pod, "n1");
  const std::vector<v1beta1::EffectResult> results = {Result("10")};
  SetVolume("pv1", "n1", "11", "");
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: ClaimRef got reset for pv \"pv1\"");
  SetVolume("pv1", "n2", "12", "");
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: pv \"pv1\" node affinity doesn't match node \"n1\": no matching "
            "NodeSelectorTerms");
  v1beta1::ClusterObject claim;
  claim.mutable_persistent_volume_claim()->set_namespace_("default");
  claim.mutable_persistent_volume_claim()->set_name("a");
  harness_->RemoveObject(claim);
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: failed to check binding: persistentvolumeclaims \"default/a\" not "
            "found");
  v1beta1::ClusterObject volume;
  volume.mutable_persistent_volume()->set_name("pv1");
  harness_->RemoveObject(volume);
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: failed to check binding: persistentvolumes \"pv1\" not found");
  harness_->RemoveNode("n1");
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: failed to get node \"n1\": node \"n1\" not found");
}

TEST_F(BindingTest, WaitsUntilTheVolumeIsMade) {
  const v1beta1::Pod pod = Pod("p", {"c"});
  const auto effects = Reserve(pod, "n1");
  const std::vector<v1beta1::EffectResult> results = {Result("9")};
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait);
  SetClaim("c", "made", "9", ", selectedNode: n1");
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait);
  SetClaim("c", "made", "10", ", selectedNode: n1, volumeName: made, bindCompleted: true");
  EXPECT_EQ(harness_->PreBind(pod, "n1", effects, results).code(), sdk::kWait)
      << "the cluster cache does not have the volume";
  SetVolume("made", "n1", "11", "");
  EXPECT_TRUE(harness_->PreBind(pod, "n1", effects, results).ok());
}

TEST_F(BindingTest, ReportsWhyAVolumeCannotBeProvisioned) {
  const v1beta1::Pod pod = Pod("p", {"c"});
  const auto effects = Reserve(pod, "n1");
  const std::vector<v1beta1::EffectResult> results = {Result("9")};
  SetClaim("c", "made", "10", "");
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: provisioning failed for PVC \"c\"");
  SetClaim("c", "made", "11", ", selectedNode: n1, volumeName: made");
  SetVolume("made", "n2", "11", "");
  EXPECT_EQ(Text(harness_->PreBind(pod, "n1", effects, results)),
            "binding volumes: pv \"made\" node affinity doesn't match node \"n1\": no matching "
            "NodeSelectorTerms");
}

}  // namespace
}  // namespace outboard::volume_binding
