#include "cli/manifests/controllers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/manifests/object_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outboard::manifests {
namespace {

using ::testing::IsEmpty;

Manifests ReadCluster(const std::string& text) {
  Manifests manifests = ReadManifests("f.yaml", text);
  EXPECT_THAT(manifests.errors, IsEmpty()) << text;
  return manifests;
}

// Running pods a, b and c of the app web, and `more`.
int DisruptionsAllowed(const std::string& spec, const std::string& more = "") {
  std::string text = absl::StrCat(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {", spec,
      "}}\n");
  for (const char* name : {"a", "b", "c"}) {
    absl::StrAppend(&text, "---\n{apiVersion: v1, kind: Pod, metadata: {name: ", name,
                    ", labels: {app: web}}, spec: {nodeName: n1, containers: [{name: c}]}}\n");
  }
  const Manifests manifests = ReadCluster(text + more);
  return manifests.objects[0]->object.pod_disruption_budget().disruptions_allowed();
}

TEST(BudgetsTest, CountAsTheDisruptionController) {
  const std::string web = "selector: {matchLabels: {app: web}}, ";
  EXPECT_EQ(DisruptionsAllowed(web + "minAvailable: 1"), 2);
  EXPECT_EQ(DisruptionsAllowed(web + "minAvailable: 5"), 0);
  EXPECT_EQ(DisruptionsAllowed(web + "minAvailable: 50%"), 1);
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 1"), 1);
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 34%"), 2);
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 9"), 3);
  EXPECT_EQ(DisruptionsAllowed("selector: {matchLabels: {app: web}}"), 0);
  EXPECT_EQ(DisruptionsAllowed("minAvailable: 0"), 0) << "nothing is selected";
  EXPECT_EQ(DisruptionsAllowed("selector: {}, minAvailable: 1"), 2) << "everything is selected";
  EXPECT_EQ(DisruptionsAllowed("selector: {matchExpressions: [{key: app, operator: NotIn, values: "
                               "[web]}]}, minAvailable: 0"),
            0);
  EXPECT_EQ(DisruptionsAllowed("selector: {matchExpressions: [{key: app, operator: Exists}, {key: "
                               "app, operator: In, values: [web]}, {key: tier, operator: "
                               "DoesNotExist}]}, maxUnavailable: 0"),
            0);
}

TEST(BudgetsTest, PodsThatAreNotHealthy) {
  const std::string web = "selector: {matchLabels: {app: web}}, ";
  const auto pod = [](const std::string& rest) {
    return "---\n{apiVersion: v1, kind: Pod, metadata: {name: d, labels: {app: web}}, " + rest +
           "}\n";
  };
  const std::string running = "spec: {nodeName: n1, containers: [{name: c}]}";
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 1", pod(running)), 1);
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 1", pod("spec: {containers: [{name: c}]}")),
            0)
      << "it has no node yet";
  EXPECT_EQ(DisruptionsAllowed(web + "maxUnavailable: 1",
                               pod(running + ", status: {phase: Running, conditions: [{type: "
                                             "Ready, status: 'False'}]}")),
            0);
  EXPECT_EQ(
      DisruptionsAllowed(web + "maxUnavailable: 1", pod(running + ", status: {phase: Succeeded}")),
      1);
}

TEST(BudgetsTest, AStatusStays) {
  const Manifests manifests = ReadCluster(
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {"
      "maxUnavailable: 1}, status: {disruptionsAllowed: 4}}\n");
  EXPECT_EQ(manifests.objects[0]->object.pod_disruption_budget().disruptions_allowed(), 4);
}

std::string Class(const std::string& name, const std::string& more) {
  return absl::StrCat("---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: ",
                      name, more, "}\n");
}

std::string Volume(const std::string& name, const std::string& spec,
                   const std::string& status = "") {
  return absl::StrCat("---\n{apiVersion: v1, kind: PersistentVolume, metadata: {name: ", name,
                      "}, spec: {accessModes: [ReadWriteOnce], ", spec, "}", status, "}\n");
}

std::string Claim(const std::string& spec, const std::string& status = "") {
  return absl::StrCat(
      "---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {"
      "accessModes: [ReadWriteOnce], resources: {requests: {storage: 5Gi}}",
      spec, "}", status, "}\n");
}

// "VOLUME CLASS" of the claim, or its phase, if it is not bound.
std::string BoundTo(const std::string& text) {
  const Manifests manifests = ReadCluster(text);
  const v1beta1::PersistentVolumeClaim* claim = nullptr;
  const v1beta1::PersistentVolume* volume = nullptr;
  for (const kube::ClusterObjectPtr& object : manifests.objects) {
    if (object->object.has_persistent_volume_claim())
      claim = &object->object.persistent_volume_claim();
  }
  for (const kube::ClusterObjectPtr& object : manifests.objects) {
    if (object->object.has_persistent_volume() &&
        object->object.persistent_volume().name() == claim->volume_name())
      volume = &object->object.persistent_volume();
  }
  if (volume == nullptr || !claim->bind_completed()) return claim->phase();
  EXPECT_EQ(volume->phase(), "Bound");
  EXPECT_EQ(volume->claim_ref().name(), "data");
  EXPECT_EQ(volume->claim_ref().uid(), claim->uid());
  EXPECT_EQ(claim->phase(), "Bound");
  return absl::StrCat(volume->name(), " ", volume->storage_class_name());
}

TEST(ClaimsTest, WaitForTheirFirstConsumer) {
  const std::string late =
      Class("late", "}, provisioner: d.io, volumeBindingMode: WaitForFirstConsumer");
  const std::string volume = Volume("disk", "storageClassName: late, capacity: {storage: 9Gi}");
  EXPECT_EQ(BoundTo(late + volume + Claim(", storageClassName: late")), "Pending");
  const Manifests manifests = ReadCluster(volume);
  EXPECT_EQ(manifests.objects[0]->object.persistent_volume().phase(), "Available");
}

TEST(ClaimsTest, NameAVolumeOrAreNamed) {
  const std::string late =
      Class("late", "}, provisioner: d.io, volumeBindingMode: WaitForFirstConsumer");
  const std::string size = "storageClassName: late, capacity: {storage: 9Gi}";
  const std::string claim = Claim(", storageClassName: late, volumeName: disk");
  EXPECT_EQ(BoundTo(late + Volume("disk", size) + claim), "disk late");
  EXPECT_EQ(BoundTo(late + claim), "Pending") << "no such volume";
  EXPECT_EQ(BoundTo(late + Volume("disk", size + ", claimRef: {namespace: default, name: other}") +
                    claim),
            "Pending")
      << "it is another claim's";
  EXPECT_EQ(BoundTo(late + Volume("disk", size + ", claimRef: {namespace: default, name: data}") +
                    Claim(", storageClassName: late")),
            "disk late");
  EXPECT_EQ(
      BoundTo(late + Volume("disk", size) +
              Claim(", storageClassName: late, volumeName: disk", ", status: {phase: Pending}")),
      "Pending")
      << "a status stays";
}

TEST(ClaimsTest, ImmediateOnesGetTheSmallestVolumeThatFitsOrANewOne) {
  const std::string now = Class("now", "}, provisioner: d.io");
  const std::string claim = Claim(", storageClassName: now");
  EXPECT_EQ(BoundTo(now + Volume("big", "storageClassName: now, capacity: {storage: 9Gi}") +
                    Volume("small", "storageClassName: now, capacity: {storage: 1Gi}") +
                    Volume("block",
                           "storageClassName: now, volumeMode: Block, capacity: {storage: 6Gi}") +
                    Volume("other", "storageClassName: other, capacity: {storage: 6Gi}") +
                    Volume("used", "storageClassName: now, capacity: {storage: 6Gi}",
                           ", status: {phase: Released}") +
                    Volume("right", "storageClassName: now, capacity: {storage: 7Gi}") + claim),
            "right now");
  EXPECT_EQ(BoundTo(now + claim), "pvc-persistentvolumeclaim-default-data now");
  EXPECT_EQ(BoundTo(Class("now", "}, provisioner: kubernetes.io/no-provisioner") + claim),
            "Pending");
  EXPECT_EQ(BoundTo(claim), "Pending") << "no such class";
  EXPECT_EQ(BoundTo(Volume("disk", "capacity: {storage: 9Gi}") + Claim("")), "disk ");
}

TEST(ClaimsTest, TheDefaultClass) {
  const std::string usual = Class(
      "usual",
      ", annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: d.io");
  EXPECT_EQ(BoundTo(usual + Class("a", "}, provisioner: d.io") + Claim("")),
            "pvc-persistentvolumeclaim-default-data usual");
  EXPECT_EQ(BoundTo(usual + Claim(", storageClassName: ''")), "Pending");
}

}  // namespace
}  // namespace outboard::manifests
