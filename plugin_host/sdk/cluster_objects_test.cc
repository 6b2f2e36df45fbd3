#include "plugin_host/sdk/cluster_objects.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::sdk {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using v1beta1::ClusterObject;
using v1beta1::ObjectReference;

void SetText(Message* message, const std::string& name, const std::string& text) {
  const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
  if (field != nullptr) message->GetReflection()->SetString(message, field, text);
}

// An object of every kind, all of one name.
std::vector<ClusterObject> ObjectsNamed(const std::string& name) {
  std::vector<ClusterObject> objects;
  const auto* kinds = ClusterObject::descriptor()->FindOneofByName("object");
  for (int i = 0; i < kinds->field_count(); ++i) {
    const bool is_controller = kinds->field(i)->number() == ClusterObject::kPodController;
    for (const char* kind : {"ReplicationController", "ReplicaSet", "StatefulSet"}) {
      ClusterObject& object = objects.emplace_back();
      Message* held = object.GetReflection()->MutableMessage(&object, kinds->field(i));
      SetText(held, "namespace", "ns");
      SetText(held, "name", name);
      SetText(held, "uid", "u");
      SetText(held, "kind", kind);
      SetText(held, "resource", "widgets.v1.example.com");
      if (!is_controller) break;
    }
  }
  return objects;
}

TEST(ClusterObjects, AReferenceNamesOneObjectOfEveryKind) {
  const std::vector<ClusterObject> all = ObjectsNamed("x");
  ClusterObjects objects;
  for (const ClusterObject& object : all) ASSERT_TRUE(objects.Upsert(object));
  size_t left = all.size();
  for (const ClusterObject& object : all) {
    const ObjectReference reference = ReferenceTo(object);
    const ClusterObject* found = objects.FindNamed(reference);
    ASSERT_NE(found, nullptr) << reference.ShortDebugString();
    EXPECT_EQ(found->SerializeAsString(), object.SerializeAsString());
    EXPECT_TRUE(objects.Remove(reference)) << reference.ShortDebugString();
    EXPECT_FALSE(objects.Remove(reference)) << reference.ShortDebugString();
    size_t count = 0;
    objects.ForEachObject([&](const ClusterObject&) { ++count; });
    EXPECT_EQ(count, --left) << reference.ShortDebugString();
  }
}

TEST(ClusterObjects, ReferencesHaveKubernetesKinds) {
  ClusterObject object;
  EXPECT_EQ(ReferenceTo(object).ShortDebugString(), "");
  object.mutable_csi_storage_capacity()->set_namespace_("ns");
  object.mutable_csi_storage_capacity()->set_name("x");
  EXPECT_EQ(ReferenceTo(object).ShortDebugString(),
            "kind: \"CSIStorageCapacity\" namespace: \"ns\" name: \"x\"");
  object.mutable_pod_controller()->set_kind("ReplicaSet");
  object.mutable_pod_controller()->set_uid("u");
  EXPECT_EQ(ReferenceTo(object).ShortDebugString(), "kind: \"ReplicaSet\" uid: \"u\"");
  object.mutable_generic_object()->set_resource("widgets.v1.example.com");
  EXPECT_EQ(ReferenceTo(object).kind(), "widgets.v1.example.com");
}

// The shim may replace an object and remove its successor before the host gets either.
TEST(ClusterObjects, TheUidDoesNotCount) {
  ClusterObject object;
  object.mutable_persistent_volume()->set_name("x");
  object.mutable_persistent_volume()->set_uid("u");
  ClusterObjects objects;
  ASSERT_TRUE(objects.Upsert(object));
  ObjectReference reference = ReferenceTo(object);
  reference.set_uid("another");
  EXPECT_NE(objects.FindNamed(reference), nullptr);
  reference.set_kind("A kind of a later contract");
  EXPECT_EQ(objects.FindNamed(reference), nullptr);
  reference.set_kind("PersistentVolume");
  EXPECT_TRUE(objects.Remove(reference));
}

}  // namespace
}  // namespace outboard::sdk
