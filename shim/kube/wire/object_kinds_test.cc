// Every kind of objects.proto: the conversion of each field, equal for protobuf and JSON.
#include "shim/kube/wire/object_kinds.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "shim/kube/wire/decode.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::kube {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const ObjectKind& Kind(absl::string_view group, absl::string_view kind) {
  const ObjectKind* found = FindObjectKind(group, kind);
  EXPECT_NE(found, nullptr) << kind;
  return *found;
}

DocNode Parse(const std::string& json) {
  absl::StatusOr<DocNode> doc = ParseJson("test", json);
  EXPECT_TRUE(doc.ok()) << doc.status();
  return doc.ok() ? *doc : DocNode();
}

// The protobuf bytes of the object in `json`.
std::string Bytes(const ObjectKind& kind, const std::string& json) {
  std::unique_ptr<google::protobuf::Message> message(kind.prototype().New());
  EXPECT_TRUE(FillFromJson(Parse(json), message.get()).ok()) << json;
  return message->SerializeAsString();
}

// `json` is an object of `kind`; both encodings must become `expected`.
void ExpectObject(const ObjectKind& kind, const std::string& json, const std::string& expected) {
  v1beta1::ClusterObject want;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(expected, &want)) << expected;
  Decoder decoder;
  const auto by_json = DecodeObjectJson(kind, Parse(json));
  const auto by_protobuf = decoder.DecodeObject(kind, Bytes(kind, json));
  for (const auto* got : {&by_json, &by_protobuf}) {
    ASSERT_TRUE(got->ok()) << got->status();
    MessageDifferencer differ;
    std::string difference;
    differ.ReportDifferencesToString(&difference);
    EXPECT_TRUE(differ.Compare(want, (**got)->object)) << difference;
    EXPECT_EQ((**got)->uid(), "u");
    EXPECT_EQ((**got)->resource_version, "7");
    EXPECT_EQ(KindOf((**got)->object), kind.kind);
  }
}

constexpr char kMeta[] = R"("namespace":"n","name":"x","uid":"u","resourceVersion":"7")";

std::string Object(const std::string& rest, const std::string& more_meta = "") {
  return absl::StrCat("{\"metadata\":{", kMeta, more_meta, "}", rest.empty() ? "" : ",", rest, "}");
}

TEST(ObjectKinds, PathsAreTheApiServers) {
  std::set<std::string> paths;
  for (const ObjectKind& kind : ObjectKinds()) paths.insert(kind.path());
  EXPECT_EQ(
      paths,
      (std::set<std::string>{
          "/api/v1/services", "/api/v1/replicationcontrollers", "/api/v1/persistentvolumes",
          "/api/v1/persistentvolumeclaims", "/apis/apps/v1/replicasets",
          "/apis/apps/v1/statefulsets", "/apis/policy/v1/poddisruptionbudgets",
          "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/csinodes",
          "/apis/storage.k8s.io/v1/csidrivers", "/apis/storage.k8s.io/v1/csistoragecapacities",
          "/apis/storage.k8s.io/v1/volumeattachments", "/apis/resource.k8s.io/v1/deviceclasses"}));
  EXPECT_EQ(FindObjectKind("", "ReplicaSet"), nullptr);
  EXPECT_EQ(FindObjectKind("", "Pod"), nullptr);
}

TEST(ObjectKinds, EveryKindOfTheContractIsRead) {
  std::set<int> read;
  for (const ObjectKind& kind : ObjectKinds()) {
    const auto object = DecodeObjectJson(kind, Parse(Object("")));
    ASSERT_TRUE(object.ok()) << object.status();
    read.insert((*object)->object.object_case());
    EXPECT_EQ((*object)->key(), kind.namespaced ? "n/x" : "x") << kind.kind;
    const auto nameless = DecodeObjectJson(kind, Parse(R"({"metadata":{"uid":"u"}})"));
    EXPECT_THAT(std::string(nameless.status().message()),
                HasSubstr(absl::StrCat(kind.kind, " : metadata.name: must not be empty")));
    const auto without_uid = DecodeObjectJson(kind, Parse(R"({"metadata":{"name":"x"}})"));
    EXPECT_THAT(std::string(without_uid.status().message()), HasSubstr("metadata.uid"));
  }
  const auto* kinds = v1beta1::ClusterObject::descriptor()->FindOneofByName("object");
  // Custom objects belong to any resource; DecodeCustomObject reads them.
  EXPECT_EQ(read.size() + 1, static_cast<size_t>(kinds->field_count()));
}

TEST(ObjectKinds, NamesOfWhatWent) {
  for (const ObjectKind& kind : ObjectKinds()) {
    const auto object = DecodeObjectJson(kind, Parse(Object("")));
    ASSERT_TRUE(object.ok());
    const v1beta1::ObjectReference reference = ReferenceTo((*object)->object);
    EXPECT_EQ(reference.kind(), kind.kind);
    EXPECT_EQ(reference.namespace_(), kind.namespaced ? "n" : "");
    EXPECT_EQ(reference.name(), "x");
    EXPECT_EQ(KeyOf(reference), absl::StrCat(kind.kind, "/", (*object)->key()));
  }
  v1beta1::ClusterObject volume;
  volume.mutable_persistent_volume()->set_name("v");
  volume.mutable_persistent_volume()->set_uid("u");
  volume.mutable_persistent_volume()->set_phase("Bound");
  EXPECT_EQ(ReferenceTo(volume).ShortDebugString(),
            "kind: \"PersistentVolume\" name: \"v\" uid: \"u\"");
  v1beta1::ClusterObject widget;
  widget.mutable_generic_object()->set_resource("widgets.v1.example.com");
  widget.mutable_generic_object()->set_name("w");
  EXPECT_EQ(KeyOf(ReferenceTo(widget)), "widgets.v1.example.com/w");
  EXPECT_EQ(ReferenceTo({}).ShortDebugString(), "");
  EXPECT_EQ(KindOf({}), "");
  EXPECT_EQ(NamespacedName({}), "");
}

TEST(ObjectKinds, OwnersOfPods) {
  ExpectObject(Kind("", "Service"), Object(R"("spec":{"selector":{"app":"web"},"type":"ClusterIP",
                                              "ports":[{"port":80}]})"),
               R"pb(service {
                      namespace: "n"
                      name: "x"
                      selector { key: "app" value: "web" }
                    })pb");
  ExpectObject(Kind("", "ReplicationController"),
               Object(R"("spec":{"replicas":2,"selector":{"app":"web"}})"),
               R"pb(pod_controller {
                      api_version: "v1"
                      kind: "ReplicationController"
                      namespace: "n"
                      name: "x"
                      uid: "u"
                      selector { match_labels { key: "app" value: "web" } }
                    })pb");
  const std::string selector = R"("spec":{"selector":{"matchLabels":{"app":"web"},
      "matchExpressions":[{"key":"tier","operator":"NotIn","values":["a","b"]}]},
      "template":{"spec":{}}})";
  constexpr char kSelector[] =
      R"pb(selector {
             match_labels { key: "app" value: "web" }
             match_expressions { key: "tier" operator: OPERATOR_NOT_IN values: "a" values: "b" }
           })pb";
  for (const char* kind : {"ReplicaSet", "StatefulSet"}) {
    const std::string identity = absl::StrCat("api_version: 'apps/v1' kind: '", kind,
                                              "' namespace: 'n' name: 'x' uid: 'u' ");
    ExpectObject(Kind("apps", kind), Object(selector),
                 absl::StrCat("pod_controller { ", identity, kSelector, " }"));
    ExpectObject(Kind("apps", kind), Object(""), absl::StrCat("pod_controller { ", identity, "}"));
  }
}

TEST(ObjectKinds, Budgets) {
  ExpectObject(Kind("policy", "PodDisruptionBudget"),
               Object(R"("spec":{"minAvailable":"50%","selector":{}},
                         "status":{"disruptionsAllowed":3,"currentHealthy":4,"disruptedPods":
                         {"b":"2026-01-31T09:30:00Z","a":"2026-01-31T09:30:00Z"}})"),
               R"pb(pod_disruption_budget {
                      namespace: "n"
                      name: "x"
                      selector {}
                      disruptions_allowed: 3
                      disrupted_pods: "a"
                      disrupted_pods: "b"
                    })pb");
  ExpectObject(Kind("policy", "PodDisruptionBudget"), Object(""),
               "pod_disruption_budget { namespace: 'n' name: 'x' }");
}

TEST(ObjectKinds, Volumes) {
  ExpectObject(Kind("", "PersistentVolume"),
               Object(R"("spec":{"capacity":{"storage":"1500m"},"accessModes":["ReadWriteOnce"],
                 "claimRef":{"kind":"PersistentVolumeClaim","namespace":"shop","name":"data",
                             "uid":"cu"},
                 "storageClassName":"field","volumeMode":"Block","volumeAttributesClassName":"gold",
                 "nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":
                   [{"key":"zone","operator":"In","values":["a"]}]}]}},
                 "csi":{"driver":"d.io","volumeHandle":"h","fsType":"ext4"}},
                 "status":{"phase":"Bound"})",
                      R"(,"labels":{"zone":"a"},"deletionTimestamp":"2026-01-31T09:30:00Z",
                "annotations":{"pv.kubernetes.io/bound-by-controller":"yes",
                               "volume.beta.kubernetes.io/storage-class":"annotation"})"),
               R"pb(persistent_volume {
                      name: "x"
                      uid: "u"
                      resource_version: "7"
                      labels { key: "zone" value: "a" }
                      deleting: true
                      capacity_bytes: 2
                      access_modes: "ReadWriteOnce"
                      claim_ref { namespace: "shop" name: "data" uid: "cu" }
                      storage_class_name: "annotation"
                      volume_mode: "Block"
                      node_affinity {
                        node_selector_terms {
                          match_expressions { key: "zone" operator: OPERATOR_IN values: "a" }
                        }
                      }
                      phase: "Bound"
                      csi { driver: "d.io" volume_handle: "h" }
                      volume_attributes_class_name: "gold"
                      bound_by_controller: true
                    })pb");
  // A source that is not read, and no annotation.
  ExpectObject(Kind("", "PersistentVolume"),
               Object(R"("spec":{"nfs":{"server":"s","path":"/"},"storageClassName":"field"})"),
               "persistent_volume { name: 'x' uid: 'u' resource_version: '7' "
               "storage_class_name: 'field' }");
}

TEST(ObjectKinds, AnEmptyClassAnnotationMeansNoClass) {
  ExpectObject(Kind("", "PersistentVolume"),
               Object(R"("spec":{"storageClassName":"field"})",
                      R"(,"annotations":{"volume.beta.kubernetes.io/storage-class":""})"),
               "persistent_volume { name: 'x' uid: 'u' resource_version: '7' }");
}

TEST(ObjectKinds, Claims) {
  ExpectObject(
      Kind("", "PersistentVolumeClaim"),
      Object(R"("spec":{"accessModes":["ReadWriteMany","ReadOnlyMany"],"selector":{"matchLabels":
                 {"a":"b"}},"resources":{"requests":{"storage":"1Gi"},"limits":{"storage":"2Gi"}},
                 "volumeName":"v","storageClassName":"fast","volumeMode":"Filesystem",
                 "volumeAttributesClassName":"gold","dataSource":{"kind":"VolumeSnapshot"}},
                 "status":{"phase":"Bound","capacity":{"storage":"1Gi"}})",
             R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"pu",
                 "controller":true}],"annotations":{"pv.kubernetes.io/bind-completed":"",
                 "volume.kubernetes.io/selected-node":"node-1"})"),
      R"pb(persistent_volume_claim {
             namespace: "n"
             name: "x"
             uid: "u"
             resource_version: "7"
             controller { api_version: "v1" kind: "Pod" name: "p" uid: "pu" }
             access_modes: "ReadWriteMany"
             access_modes: "ReadOnlyMany"
             selector { match_labels { key: "a" value: "b" } }
             request_bytes: 1073741824
             volume_name: "v"
             storage_class_name: "fast"
             volume_mode: "Filesystem"
             phase: "Bound"
             bind_completed: true
             selected_node: "node-1"
             volume_attributes_class_name: "gold"
           })pb");
  // Absent differs from empty and from 0.
  ExpectObject(Kind("", "PersistentVolumeClaim"),
               Object(R"("spec":{"resources":{"requests":{"storage":"0"}}})",
                      R"(,"annotations":{"volume.kubernetes.io/selected-node":""})"),
               "persistent_volume_claim { namespace: 'n' name: 'x' uid: 'u' resource_version: '7' "
               "request_bytes: 0 selected_node: '' }");
}

TEST(ObjectKinds, ClassesAndCapacities) {
  ExpectObject(
      Kind("storage.k8s.io", "StorageClass"),
      Object(R"("provisioner":"d.io","volumeBindingMode":"WaitForFirstConsumer",
                         "reclaimPolicy":"Delete","parameters":{"a":"b"},"allowedTopologies":
                         [{"matchLabelExpressions":[{"key":"zone","values":["a","b"]}]}])"),
      R"pb(storage_class {
             name: "x"
             provisioner: "d.io"
             volume_binding_mode: "WaitForFirstConsumer"
             allowed_topologies {
               match_expressions { key: "zone" operator: OPERATOR_IN values: "a" values: "b" }
             }
           })pb");
  ExpectObject(Kind("storage.k8s.io", "CSIStorageCapacity"),
               Object(R"("storageClassName":"fast","nodeTopology":{"matchLabels":{"zone":"a"}},
                         "capacity":"1Ki","maximumVolumeSize":"512")"),
               R"pb(csi_storage_capacity {
                      namespace: "n"
                      name: "x"
                      storage_class_name: "fast"
                      node_topology { match_labels { key: "zone" value: "a" } }
                      capacity_bytes: 1024
                      maximum_volume_bytes: 512
                    })pb");
  ExpectObject(Kind("storage.k8s.io", "CSIStorageCapacity"), Object(R"("storageClassName":"fast")"),
               "csi_storage_capacity { namespace: 'n' name: 'x' storage_class_name: 'fast' }");
  ExpectObject(Kind("resource.k8s.io", "DeviceClass"),
               Object(R"("spec":{"extendedResourceName":"example.com/gpu",
                         "selectors":[{"cel":{"expression":"true"}}]})"),
               "device_class { name: 'x' extended_resource_name: 'example.com/gpu' }");
}

TEST(ObjectKinds, DriversAndAttachments) {
  ExpectObject(Kind("storage.k8s.io", "CSINode"),
               Object(R"("spec":{"drivers":[{"name":"d.io","nodeID":"i","topologyKeys":["zone"],
                         "allocatable":{"count":0}},{"name":"e.io","nodeID":"i"}]})",
                      R"(,"annotations":{"storage.alpha.kubernetes.io/migrated-plugins":
                          "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"})"),
               R"pb(csi_node {
                      name: "x"
                      drivers { name: "d.io" allocatable_count: 0 topology_keys: "zone" }
                      drivers { name: "e.io" }
                      migrated_plugins: "kubernetes.io/gce-pd"
                      migrated_plugins: "kubernetes.io/aws-ebs"
                    })pb");
  ExpectObject(Kind("storage.k8s.io", "CSINode"),
               Object("", R"(,"annotations":{"storage.alpha.kubernetes.io/migrated-plugins":""})"),
               "csi_node { name: 'x' }");
  ExpectObject(Kind("storage.k8s.io", "CSIDriver"),
               Object(R"("spec":{"storageCapacity":true,"attachRequired":false})"),
               "csi_driver { name: 'x' storage_capacity: true }");
  ExpectObject(Kind("storage.k8s.io", "VolumeAttachment"),
               Object(R"("spec":{"attacher":"d.io","nodeName":"node-1",
                         "source":{"persistentVolumeName":"v"}},"status":{"attached":true})"),
               R"pb(volume_attachment {
                      name: "x"
                      attacher: "d.io"
                      node_name: "node-1"
                      persistent_volume_name: "v"
                    })pb");
}

TEST(ObjectKinds, BadAmountsAreNamed) {
  const auto error = [](absl::string_view group, absl::string_view name, const std::string& path) {
    const ObjectKind& kind = Kind(group, name);
    std::unique_ptr<google::protobuf::Message> message(kind.prototype().New());
    // Protobuf from a server is not validated before its conversion.
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "metadata { namespace: 'n' name: 'x' uid: 'u' } " + path, message.get()));
    return std::string(kind.from_wire(*message).status().message());
  };
  EXPECT_THAT(
      error("", "PersistentVolume", "spec { capacity { key: 'storage' value { string: '1x' } } }"),
      HasSubstr("PersistentVolume n/x: spec.capacity.storage: "));
  EXPECT_THAT(error("", "PersistentVolumeClaim",
                    "spec { resources { requests { key: 'storage' value { string: '' } } } }"),
              HasSubstr("PersistentVolumeClaim n/x: spec.resources.requests.storage: "));
  EXPECT_THAT(error("storage.k8s.io", "CSIStorageCapacity", "maximumVolumeSize { string: '1x' }"),
              HasSubstr("CSIStorageCapacity n/x: maximumVolumeSize: "));
}

TEST(ObjectKinds, ListsInBothEncodings) {
  const ObjectKind& kind = Kind("", "Service");
  const std::string good = Object("");
  const std::string bad = R"({"metadata":{"name":"x"}})";
  Decoder decoder;
  std::string bytes;
  for (const std::string& item : {good, bad, good}) {
    const std::string encoded = Bytes(kind, item);
    bytes += absl::StrCat("\x12", std::string(1, static_cast<char>(encoded.size())), encoded);
  }
  const auto by_protobuf = decoder.DecodeObjectList(kind, bytes);
  const auto by_json = DecodeObjectListJson(
      kind, Parse(absl::StrCat(R"({"items":[)", good, ",", bad, ",", good, "]}")));
  for (const auto* page : {&by_protobuf, &by_json}) {
    ASSERT_TRUE(page->ok()) << page->status();
    EXPECT_THAT((*page)->items, SizeIs(2));
    ASSERT_THAT((*page)->rejected, SizeIs(1));
    EXPECT_THAT((*page)->rejected[0].why, HasSubstr("items[1]: Service x: metadata.uid"));
    EXPECT_EQ((*page)->rejected[0].identity.key(), "x");
    EXPECT_EQ((*page)->rejected[0].identity.uid, "");
  }
}

TEST(ObjectKinds, ADecoderTakesKindsInTurn) {
  Decoder decoder;
  const ObjectKind& service = Kind("", "Service");
  const ObjectKind& volume = Kind("", "PersistentVolume");
  for (int i = 0; i < 2; ++i) {
    const auto s =
        decoder.DecodeObject(service, Bytes(service, Object(R"("spec":{"selector":{"a":"b"}})")));
    ASSERT_TRUE(s.ok());
    EXPECT_EQ((*s)->object.service().selector_size(), 1);
    const auto v = decoder.DecodeObject(volume, Bytes(volume, Object("")));
    ASSERT_TRUE(v.ok());
    EXPECT_EQ((*v)->key(), "x");
  }
  EXPECT_FALSE(decoder.DecodeObject(service, "\xff\xff").ok());
}

}  // namespace
}  // namespace outboard::kube
