#include "cli/manifests/object_reader.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/reading_options.h"

namespace outboard::manifests {

using kube::PodObject;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Manifests Read(const std::string& text) {
  Manifests manifests = ReadManifests("f.yaml", text);
  EXPECT_THAT(manifests.errors, IsEmpty()) << text;
  return manifests;
}

std::string ErrorOf(const std::string& text) {
  const Manifests manifests = ReadManifests("f.yaml", text);
  EXPECT_FALSE(manifests.errors.empty()) << text;
  return absl::StrJoin(manifests.errors, "\n");
}

// A pod whose spec has one container and `rest`, which begins in line 6 and is indented by two.
std::string PodSpec(const std::string& rest) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c}]\n" +
         rest;
}

TEST(Manifests, DefaultsOfAPod) {
  const Manifests manifests = Read(R"(
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  hostNetwork: true
  containers:
  - name: c
    image: nginx
    command: ["sleep"]
    env: [{name: A, value: b}]
    resources:
      limits: {cpu: 2, memory: 1Gi}
    ports:
    - containerPort: 80
  volumes:
  - name: scratch
  tolerations:
  - {key: k, value: v}
)");
  EXPECT_THAT(manifests.warnings, IsEmpty());
  ASSERT_THAT(manifests.pods, SizeIs(1));
  const PodObject& pod = *manifests.pods[0];
  EXPECT_EQ(pod.key(), "default/web");
  EXPECT_EQ(pod.uid(), "pod-default-web");
  EXPECT_EQ(pod.phase, "Pending");
  EXPECT_EQ(pod.pod.scheduler_name(), "default-scheduler");
  EXPECT_EQ(pod.pod.creation_unix_seconds(), 0);
  EXPECT_EQ(pod.pod.containers(0).requests().cpu_millis(), 2000);
  EXPECT_EQ(pod.pod.containers(0).ports(0).host_port(), 80);
  EXPECT_EQ(pod.pod.containers(0).ports(0).protocol(), v1beta1::PROTOCOL_TCP);
  EXPECT_EQ(pod.pod.volumes(0).source(), "emptyDir");
  EXPECT_EQ(pod.pod.tolerations(0).operator_(), v1beta1::Toleration::OPERATOR_EQUAL);
  EXPECT_EQ(Read(PodSpec("  nodeName: n1\n")).pods[0]->phase, "Running");
  v1beta1::Pod on_request;
  ASSERT_TRUE(on_request.ParseFromString(pod.on_request));
  EXPECT_EQ(on_request.service_account_name(), "default");
  EXPECT_EQ(on_request.phase(), v1beta1::POD_PHASE_PENDING);
}

TEST(Manifests, ComparisonOperatorsOfTolerationsNeedTheFeatureGate) {
  const std::string good = PodSpec("  tolerations: [{key: k, operator: Lt, value: \"-5\"}]\n");
  EXPECT_THAT(ErrorOf(good), HasSubstr("operator: \"Lt\" must be one of Equal, Exists"));
  const kube::ReadingOptions before = kube::Reading();
  kube::ReadingOptions open = before;
  open.comparison_operators = true;
  kube::SetReading(open);
  EXPECT_EQ(Read(good).pods.at(0)->pod.tolerations(0).operator_(),
            v1beta1::Toleration::OPERATOR_LT);
  EXPECT_THAT(ErrorOf(PodSpec("  tolerations: [{key: k, operator: Gt, value: \"05\"}]\n")),
              HasSubstr("value: must be a decimal integer"));
  kube::SetReading(before);
}

TEST(Manifests, NodesAndNamespaces) {
  const Manifests manifests = Read(R"(
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: "4", memory: 32Gi, pods: 110, example.com/dongle: 2}
---
apiVersion: v1
kind: Node
metadata: {name: n2, uid: given}
status:
  capacity: {cpu: "4"}
  allocatable: {cpu: 3500m}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
)");
  ASSERT_THAT(manifests.nodes, SizeIs(2));
  EXPECT_EQ(manifests.nodes[0]->uid(), "node-n1");
  EXPECT_EQ(manifests.nodes[0]->node.allocatable().pods(), 110);
  EXPECT_EQ(manifests.nodes[0]->node.allocatable().scalar().at("example.com/dongle"), 2);
  EXPECT_EQ(manifests.nodes[1]->uid(), "given");
  EXPECT_EQ(manifests.nodes[1]->node.allocatable().cpu_millis(), 3500);
  ASSERT_THAT(manifests.namespaces, SizeIs(1));
  EXPECT_EQ(manifests.namespaces[0]->uid(), "namespace-shop");
  EXPECT_EQ(manifests.namespaces[0]->ns.labels().at("kubernetes.io/metadata.name"), "shop");
}

TEST(Manifests, ListsOfAllSorts) {
  const Manifests manifests = Read(R"(
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec: {containers: [{name: c}]}
- {apiVersion: v1, kind: Node, metadata: {name: n}}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: b, namespace: x}
  spec: {containers: [{name: c}]}
---
apiVersion: v1
kind: NodeList
items:
)");
  ASSERT_THAT(manifests.pods, SizeIs(2));
  EXPECT_EQ(manifests.pods[0]->key(), "default/a");
  EXPECT_EQ(manifests.pods[1]->key(), "x/b");
  EXPECT_THAT(manifests.nodes, SizeIs(1));
}

TEST(Manifests, Json) {
  const Manifests manifests = Read(
      "\n {\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\n"
      "\t\"annotations\":{\"e\":\"\\ud83d\\ude00\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}]}"
      "}");
  ASSERT_THAT(manifests.pods, SizeIs(1));
  EXPECT_EQ(manifests.pods[0]->pod.annotations().at("e"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(ErrorOf("{\"apiVersion\":\"v1\",\n\"kind\":\"Pod\",\n\"metadata\":{\"name\":7}}"),
            "f.yaml:1:1: spec.containers: must have at least one container\n"
            "f.yaml:3:20: metadata.name: must be a string, not a number; write \"7\" in quotes");
  // YAML that begins with flow style.
  EXPECT_THAT(Read("{apiVersion: v1, kind: Node, metadata: {name: n}}\n---\n{apiVersion: v1, kind: "
                   "Node, metadata: {name: m}}")
                  .nodes,
              SizeIs(2));
  EXPECT_THAT(ErrorOf("{\"a\": "), HasSubstr("f.yaml:1:"));
}

std::string ObjectText(const std::string& manifest) {
  const Manifests manifests = Read(manifest);
  EXPECT_THAT(manifests.warnings, IsEmpty()) << manifest;
  return manifests.objects.size() == 1 ? manifests.objects[0]->object.ShortDebugString()
                                       : "not one object";
}

TEST(Manifests, ObjectsWithWhatTheApiServerFillsIn) {
  EXPECT_EQ(ObjectText("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
                       "spec: {selector: {a: b}, ports: [{port: 1}]}\n"),
            "service { namespace: \"default\" name: \"s\" selector { key: \"a\" value: \"b\" } }");
  EXPECT_EQ(
      ObjectText("apiVersion: v1\nkind: ReplicationController\nmetadata: {name: r}\n"
                 "spec: {template: {metadata: {labels: {a: b}}, spec: {}}}\n"),
      "pod_controller { api_version: \"v1\" kind: \"ReplicationController\" namespace: \"default\" "
      "name: \"r\" uid: \"replicationcontroller-default-r\" "
      "selector { match_labels { key: \"a\" value: \"b\" } } }");
  EXPECT_EQ(
      ObjectText("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: t, namespace: "
                 "n}\nspec: {selector: {matchLabels: {a: b}}}\n"),
      "pod_controller { api_version: \"apps/v1\" kind: \"StatefulSet\" namespace: \"n\" name: "
      "\"t\" uid: \"statefulset-n-t\" selector { match_labels { key: \"a\" value: \"b\" } } }");
  EXPECT_EQ(
      ObjectText("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v, namespace: x}\n"
                 "spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1}, nfs: {path: /}}"),
      "persistent_volume { name: \"v\" uid: \"persistentvolume-v\" capacity_bytes: 1 "
      "access_modes: \"ReadWriteOnce\" volume_mode: \"Filesystem\" phase: \"Available\" }");
  EXPECT_EQ(ObjectText("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\n"
                       "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}"),
            "persistent_volume_claim { namespace: \"default\" name: \"c\" uid: "
            "\"persistentvolumeclaim-default-c\" access_modes: \"ReadWriteOnce\" request_bytes: 1 "
            "volume_mode: \"Filesystem\" phase: \"Pending\" }");
  EXPECT_EQ(
      ObjectText("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\n"
                 "provisioner: d.io\n"),
      "storage_class { name: \"c\" provisioner: \"d.io\" volume_binding_mode: \"Immediate\" }");
}

TEST(Manifests, WhatIsWrittenGoesBeforeWhatIsFilledIn) {
  EXPECT_EQ(
      ObjectText("apiVersion: v1\nkind: ReplicationController\nmetadata: {name: r, uid: u}\n"
                 "spec: {selector: {c: d}, template: {metadata: {labels: {a: b}}}}\n"),
      "pod_controller { api_version: \"v1\" kind: \"ReplicationController\" namespace: \"default\" "
      "name: \"r\" uid: \"u\" selector { match_labels { key: \"c\" value: \"d\" } } }");
  EXPECT_EQ(ObjectText("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\n"
                       "provisioner: d.io\nvolumeBindingMode: WaitForFirstConsumer\n"),
            "storage_class { name: \"c\" provisioner: \"d.io\" volume_binding_mode: "
            "\"WaitForFirstConsumer\" }");
  EXPECT_EQ(ObjectText("apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v, uid: u}\nspec: "
                       "{accessModes: [ReadWriteOnce], capacity: {storage: 1}, volumeMode: Block, "
                       "csi: {driver: d.io, volumeHandle: h}}\nstatus: {phase: Bound}\n"),
            "persistent_volume { name: \"v\" uid: \"u\" capacity_bytes: 1 access_modes: "
            "\"ReadWriteOnce\" volume_mode: \"Block\" phase: \"Bound\" "
            "csi { driver: \"d.io\" volume_handle: \"h\" } }");
}

TEST(Manifests, ObjectsThatAreRefused) {
  const auto refused = [](const std::string& api_version, const std::string& kind,
                          const std::string& rest) {
    return ErrorOf("apiVersion: " + api_version + "\nkind: " + kind + "\nmetadata: {name: x}\n" +
                   rest);
  };
  EXPECT_THAT(refused("v1", "Service", "spec: {selector: {'/x': y}}"), HasSubstr("spec.selector"));
  EXPECT_THAT(refused("v1", "ReplicationController", ""),
              HasSubstr("spec.selector: must not be empty"));
  EXPECT_THAT(refused("apps/v1", "ReplicaSet", "spec: {selector: {}}"),
              HasSubstr("spec.selector: must not be empty"));
  EXPECT_THAT(refused("apps/v1", "StatefulSet",
                      "spec: {selector: {matchExpressions: [{key: a, operator: Near}]}}"),
              HasSubstr("spec.selector.matchExpressions[0].operator"));
  EXPECT_THAT(refused("policy/v1", "PodDisruptionBudget", "status: {disruptionsAllowed: -1}"),
              HasSubstr("status.disruptionsAllowed: -1"));
  const std::string modes = "accessModes: [ReadWriteOnce]";
  EXPECT_THAT(refused("v1", "PersistentVolume", "spec: {}"), HasSubstr("spec.accessModes"));
  EXPECT_THAT(refused("v1", "PersistentVolume", "spec: {" + modes + "}"),
              HasSubstr("spec.capacity"));
  EXPECT_THAT(refused("v1", "PersistentVolume",
                      "spec: {" + modes + ", capacity: {storage: 1}, volumeMode: Tape}"),
              HasSubstr("spec.volumeMode: \"Tape\" must be one of Filesystem, Block"));
  EXPECT_THAT(refused("v1", "PersistentVolume",
                      "spec: {" + modes + ", capacity: {storage: 1}, nodeAffinity: {}}"),
              HasSubstr("spec.nodeAffinity.required.nodeSelectorTerms"));
  EXPECT_THAT(refused("v1", "PersistentVolumeClaim", "spec: {accessModes: [ReadSometimes]}"),
              HasSubstr("spec.accessModes[0]: \"ReadSometimes\" must be one of"));
  EXPECT_THAT(refused("v1", "PersistentVolumeClaim", "spec: {" + modes + "}"),
              HasSubstr("spec.resources.requests: must contain storage"));
  EXPECT_THAT(refused("v1", "PersistentVolumeClaim",
                      "spec: {" + modes +
                          ", resources: {requests: {storage: 1}}}\n"
                          "status: {phase: Lucky}"),
              HasSubstr("status.phase: \"Lucky\""));
  EXPECT_THAT(refused("storage.k8s.io/v1", "StorageClass", ""), HasSubstr("provisioner"));
  EXPECT_THAT(refused("storage.k8s.io/v1", "StorageClass",
                      "provisioner: d.io\nvolumeBindingMode: Sometime\n"),
              HasSubstr("volumeBindingMode: \"Sometime\""));
  EXPECT_THAT(refused("storage.k8s.io/v1", "CSINode", "spec: {drivers: [{name: d}, {name: d}]}"),
              HasSubstr("spec.drivers[1].name: duplicate \"d\""));
  EXPECT_THAT(
      refused("storage.k8s.io/v1", "CSIStorageCapacity", "storageClassName: c\ncapacity: -1\n"),
      HasSubstr("capacity: -1 must be greater than or equal to 0"));
  EXPECT_THAT(refused("storage.k8s.io/v1", "VolumeAttachment", "spec: {attacher: d.io}"),
              HasSubstr("spec.nodeName: must not be empty"));
  EXPECT_THAT(refused("resource.k8s.io/v1", "DeviceClass", "spec: {extendedResourceName: '/'}"),
              HasSubstr("spec.extendedResourceName"));
  EXPECT_THAT(refused("storage.k8s.io/v1", "CSIDriver", "spec: {storageCapacity: maybe}"),
              HasSubstr("spec.storageCapacity: must be a boolean"));
}

TEST(Manifests, SpreadConstraintsThatAreRefused) {
  const auto refused = [](const std::string& more) {
    return ErrorOf(PodSpec("  topologySpreadConstraints:\n  - {maxSkew: 1, topologyKey: zone, " +
                           more + "}\n"));
  };
  EXPECT_THAT(refused("whenUnsatisfiable: DoNotSchedule, minDomains: 0"),
              HasSubstr("topologySpreadConstraints[0].minDomains: 0 must be greater than 0"));
  EXPECT_THAT(refused("whenUnsatisfiable: ScheduleAnyway, minDomains: 2"),
              HasSubstr("can only use minDomains if whenUnsatisfiable=DoNotSchedule"));
  EXPECT_THAT(refused("whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Sometimes"),
              HasSubstr("nodeTaintsPolicy: \"Sometimes\" must be one of Honor, Ignore"));
  EXPECT_THAT(refused("whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]"),
              HasSubstr("must not be specified when labelSelector is not set"));
}

TEST(Manifests, OtherKinds) {
  const Manifests manifests = Read(R"(
{apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: g},
 spec: {minMember: 3}}
---
{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: k}}
)");
  ASSERT_THAT(manifests.others, SizeIs(2));
  EXPECT_EQ(manifests.others[1].api_version, "scheduling.k8s.io/v1alpha2");
  EXPECT_EQ(manifests.others[0].json,
            "{\"apiVersion\":\"scheduling.x-k8s.io/"
            "v1alpha1\",\"kind\":\"PodGroup\",\"metadata\":{\"name\":\"g\"},"
            "\"spec\":{\"minMember\":3}}");
  EXPECT_THAT(ErrorOf("kind: Pod\n"), HasSubstr("apiVersion: must not be empty"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\n"), HasSubstr("kind: must not be empty"));
  EXPECT_THAT(ErrorOf("- a\n"), HasSubstr("f.yaml:1:1: must be a Kubernetes object, not a list"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Service\nmetadata: {}\n"),
              HasSubstr("f.yaml:3:11: metadata.name"));
  EXPECT_THAT(Read("").pods, IsEmpty());
  EXPECT_THAT(Read("# nothing\n---\n").pods, IsEmpty());
}

TEST(Manifests, UnknownFieldsAreWarnings) {
  const std::string text = PodSpec(
      "  nodeSelektor: {a: b}\n  restartPolicy: Never\n  volumes:\n  - {name: v, "
      "configMap: {name: cm, optional: true}}\n"
      "  - name: w\n    flashDisk: {}\n  - {name: x, emptyDir: {sizeLimt: 1}}\n");
  const Manifests manifests = Read(text);
  EXPECT_THAT(
      manifests.warnings,
      ElementsAre("f.yaml:6:3: spec.nodeSelektor: unknown field, ignored; did you mean "
                  "nodeSelector?",
                  "f.yaml:11:5: spec.volumes[1].flashDisk: unknown field, ignored",
                  "f.yaml:12:26: spec.volumes[2].emptyDir.sizeLimt: unknown field, ignored; did "
                  "you mean sizeLimit?"));
  EXPECT_EQ(manifests.pods[0]->pod.volumes(0).source(), "configMap");
  // Below fields that are not read, names are not known.
  EXPECT_THAT(Read(PodSpec("  dnsConfig: {nameserver: [1.1.1.1]}\n")).warnings, IsEmpty());

  ManifestReader strict(/*strict=*/true);
  strict.Read("f.yaml", text, false);
  const Manifests refused = strict.Finish();
  EXPECT_THAT(refused.warnings, IsEmpty());
  EXPECT_THAT(refused.errors,
              ElementsAre("f.yaml:6:3: spec.nodeSelektor: unknown field; did you mean "
                          "nodeSelector?",
                          "f.yaml:11:5: spec.volumes[1].flashDisk: unknown field",
                          "f.yaml:12:26: spec.volumes[2].emptyDir.sizeLimt: unknown field; did you "
                          "mean sizeLimit?"));
}

TEST(Manifests, ALongListOfProblemsIsCut) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    text += "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p" + std::to_string(i) + "}\n";
  const Manifests manifests = ReadManifests("f.yaml", text);
  EXPECT_THAT(manifests.errors, SizeIs(101));
  EXPECT_EQ(manifests.errors[0], "f.yaml:2:1: spec.containers: must have at least one container");
  EXPECT_EQ(manifests.errors[100], "… and 50 more");
}

TEST(Manifests, WhatKubectlPrintsGivesNoWarning) {
  std::ifstream stream("cli/manifests/testdata/kubectl_list.yaml");
  std::stringstream text;
  text << stream.rdbuf();
  const Manifests manifests = Read(text.str());
  EXPECT_THAT(manifests.warnings, IsEmpty());
  ASSERT_THAT(manifests.pods, SizeIs(1));
  // Its class is not among the manifests.
  EXPECT_EQ(manifests.pods[0]->pod.priority(), 1000);
  EXPECT_THAT(manifests.nodes, SizeIs(1));
  EXPECT_THAT(manifests.objects, SizeIs(3));
}

TEST(Manifests, OtherVersionsOfSkippedKindsAreSkipped) {
  const Manifests manifests = Read(
      "{apiVersion: flowcontrol.apiserver.k8s.io/v1beta3, kind: FlowSchema, metadata: {name: "
      "a}}\n");
  EXPECT_THAT(manifests.warnings, ElementsAre("f.yaml: skipped, because scheduling does not read "
                                              "these kinds: FlowSchema (1)"));
}

TEST(Manifests, WorkloadsOfTheClusterAreHintsOnlyWithoutPods) {
  const std::string deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}\n";
  EXPECT_THAT(Read(deployment).warnings,
              ElementsAre("f.yaml: skipped, because scheduling does not read these kinds: "
                          "Deployment (1); no pods are created from them, give Pods"));
  EXPECT_THAT(Read(deployment + "---\n" + PodSpec("")).warnings,
              ElementsAre("f.yaml: skipped, because scheduling does not read these kinds: "
                          "Deployment (1)"));
}

TEST(Manifests, ErrorsHavePlaceAndPath) {
  EXPECT_EQ(ErrorOf(PodSpec("").replace(PodSpec("").find("{name: c}"), 9,
                                        "{name: c, resources: {requests: {cpu: 1x}}}")),
            "f.yaml:5:54: spec.containers[0].resources.requests.cpu: \"1x\" is not a quantity: "
            "quantities must match the "
            "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  EXPECT_EQ(ErrorOf(PodSpec("  priority: high\n")),
            "f.yaml:6:13: spec.priority: must be an integer, not a string");
  EXPECT_EQ(
      ErrorOf(PodSpec("  tolerations:\n  - {key: a, operator: Sometimes}\n")),
      "f.yaml:7:24: spec.tolerations[0].operator: \"Sometimes\" must be one of Equal, Exists");
  EXPECT_EQ(ErrorOf(PodSpec("  priority: 1\n  priority: 2\n")),
            "f.yaml:7:3: duplicate field \"priority\"");
  EXPECT_THAT(ErrorOf("a: [\n"), HasSubstr("f.yaml:2:1: "));
}

TEST(Manifests, RefusedPods) {
  const std::pair<const char*, const char*> cases[] = {
      {"  tolerations: [{value: a}]\n",
       "spec.tolerations[0].operator: must be Exists when `key` is empty"},
      {"  tolerations: [{key: a, effect: Sometimes}]\n",
       "spec.tolerations[0].effect: \"Sometimes\" must be one of"},
      {"  tolerations: [{operator: Exists, value: a}]\n",
       "spec.tolerations[0].value: must be empty"},
      {"  tolerations: [{key: a, tolerationSeconds: 5}]\n",
       "spec.tolerations[0].effect: must be NoExecute"},
      {"  nodeSelector: {'a b': c}\n", "spec.nodeSelector[a b]: "},
      {"  nodeSelector: {a: '-'}\n", "spec.nodeSelector.a: "},
      {"  nodeName: n_1\n", "spec.nodeName: "},
      {"  nodeName: n1\n  schedulingGates: [{name: g}]\n", "spec.nodeName: cannot be set until"},
      {"  preemptionPolicy: Maybe\n", "spec.preemptionPolicy: "},
      {"  initContainers: [{name: c}]\n", "spec.initContainers[0].name: duplicate \"c\""},
      {"  initContainers: [{name: i, resources: {requests: {cpu: -1}}}]\n",
       "spec.initContainers[0].resources.requests.cpu: -1 must be greater than or equal to 0"},
      {"  initContainers: [{name: i, resources: {requests: {cpu: 2}, limits: {cpu: 1}}}]\n",
       "requests.cpu: 2 must be less than or equal to the limit of 1"},
      {"  initContainers: [{name: i, resources: {requests: {a.com/b: 1}, limits: {a.com/b: 2}}}]\n",
       "requests[a.com/b]: 1 must be equal to the limit of 2"},
      {"  initContainers: [{name: i, resources: {requests: {a.com/b: 1500m}}}]\n",
       "1500m must be an integer"},
      {"  initContainers: [{name: i, resources: {requests: {gpu: 1}}}]\n",
       "requests.gpu: must be cpu, memory"},
      {"  initContainers: [{name: i, ports: [{containerPort: 70000}]}]\n",
       "spec.initContainers[0].ports[0].containerPort: 70000 must be between 1 and 65535"},
      {"  initContainers: [{name: i, ports: [{containerPort: 1, protocol: tcp}]}]\n",
       "ports[0].protocol: "},
      {"  topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: "
       "DoNotSchedule}]\n",
       "spec.topologySpreadConstraints[0].maxSkew: "},
      {"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}\n",
       "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
       "nodeSelectorTerms: "},
      {"  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
       "{nodeSelectorTerms: "
       "[{matchExpressions: [{key: a, operator: Gt}]}]}}}\n",
       "nodeSelectorTerms[0].matchExpressions[0].values: must be one value"},
      {"  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: "
       "101, preference: {}}]}}\n",
       "preferredDuringSchedulingIgnoredDuringExecution[0].weight: 101 must be between 1 and 100"},
      {"  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
       "[{topologyKey: ''}]}}\n",
       "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
       "topologyKey: must not be empty"},
      {"status: {phase: Done}\n", "status.phase: "},
  };
  for (const auto& [rest, message] : cases) {
    EXPECT_THAT(ErrorOf(PodSpec(rest)), HasSubstr(message)) << rest;
  }
  EXPECT_THAT(
      ErrorOf("apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\n"),
      HasSubstr("f.yaml:3:26: metadata.generateName: not supported in files; set metadata.name"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Pod\nmetadata: {name: Big}\n"),
              HasSubstr("metadata.name: \"Big\" must consist of"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {'/x': y}}\n"),
              HasSubstr("metadata.labels[/x]: "));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"),
              HasSubstr("spec.containers: must have at least one"));
}

TEST(Manifests, RefusedNodes) {
  const std::string head = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n";
  EXPECT_EQ(ErrorOf(head + "spec: {taints: [{key: a, effect: Never}]}\n"),
            "f.yaml:4:34: spec.taints[0].effect: \"Never\" must be one of NoSchedule, "
            "PreferNoSchedule, NoExecute");
  EXPECT_THAT(ErrorOf(head + "spec: {taints: [{key: a, effect: NoSchedule}, {key: a, effect: "
                             "NoSchedule, value: v}]}\n"),
              HasSubstr("spec.taints[1]: taints must be unique"));
  EXPECT_THAT(ErrorOf(head + "status: {allocatable: {cpu: -2}}\n"),
              HasSubstr("status.allocatable.cpu: -2 must be greater"));
  EXPECT_THAT(ErrorOf(head + "status: {capacity: {pods: 1.5}}\n"),
              HasSubstr("status.capacity.pods: 1.5 must be an integer"));
  EXPECT_THAT(ErrorOf("apiVersion: v1\nkind: Node\nmetadata: {name: a_b}\n"),
              HasSubstr("metadata.name: "));
}

TEST(Manifests, PodLevelResources) {
  const Manifests manifests = Read(R"(
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resources:
    limits: {cpu: 4, memory: 8Gi}
  containers:
  - name: a
    resources: {requests: {cpu: 500m}, limits: {hugepages-2Mi: 2Mi, memory: 1Gi}}
  - name: b
    resources: {requests: {cpu: 500m}, limits: {hugepages-2Mi: 4Mi}}
  initContainers:
  - name: side
    restartPolicy: Always
    resources: {requests: {cpu: 250m}}
  - name: first
    resources: {requests: {cpu: 1500m}}
)");
  ASSERT_THAT(manifests.pods, SizeIs(1));
  const v1beta1::Pod& pod = manifests.pods[0]->pod;
  EXPECT_EQ(pod.pod_requests().cpu_millis(), 1750);
  EXPECT_EQ(pod.pod_requests().memory_bytes(), int64_t{1} << 30);
  EXPECT_EQ(pod.pod_requests().scalar().at("hugepages-2Mi"), 6 << 20);
  EXPECT_EQ(pod.pod_limits().scalar().at("hugepages-2Mi"), 6 << 20);
  const Manifests plain = Read(PodSpec("  resources: {requests: {cpu: 1}}\n"));
  EXPECT_EQ(plain.pods[0]->pod.pod_requests().cpu_millis(), 1000);
  EXPECT_FALSE(plain.pods[0]->pod.pod_requests().has_memory_bytes());
}

TEST(Manifests, MatchLabelKeysBecomeRequirements) {
  const Manifests manifests = Read(R"(
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {rev: a, tenant: t}}
spec:
  containers: [{name: c}]
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: zone
        labelSelector: {}
        matchLabelKeys: [rev, absent]
        mismatchLabelKeys: [tenant]
)");
  ASSERT_THAT(manifests.pods, SizeIs(1));
  const auto& selector = manifests.pods[0]
                             ->pod.affinity()
                             .pod_affinity()
                             .required_during_scheduling_ignored_during_execution(0)
                             .label_selector();
  ASSERT_EQ(selector.match_expressions_size(), 2);
  EXPECT_EQ(selector.match_expressions(0).key(), "rev");
  EXPECT_EQ(selector.match_expressions(0).operator_(), v1beta1::SelectorRequirement::OPERATOR_IN);
  EXPECT_EQ(selector.match_expressions(1).key(), "tenant");
  EXPECT_EQ(selector.match_expressions(1).operator_(),
            v1beta1::SelectorRequirement::OPERATOR_NOT_IN);
}

}  // namespace
}  // namespace outboard::manifests
