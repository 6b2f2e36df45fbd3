#include "shim/kube/wire/custom_resource.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/kube/wire/custom_resource_name.h"
#include "shim/kube/wire/json_decode.h"

namespace outboard::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWidgets[] = "widgets.v1.example.com";

TEST(ParseCustomResourceName, TakesThemApart) {
  const auto name = ParseCustomResourceName("widgets.v1beta1.shop.example.com");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->resource, "widgets");
  EXPECT_EQ(name->api_version(), "shop.example.com/v1beta1");
  EXPECT_EQ(name->path(), "/apis/shop.example.com/v1beta1/widgets");
  EXPECT_EQ(name->path("a", "w"), "/apis/shop.example.com/v1beta1/namespaces/a/widgets/w");
  EXPECT_EQ(name->path("", "w"), "/apis/shop.example.com/v1beta1/widgets/w");
  EXPECT_EQ(name->full_name(), "widgets.v1beta1.shop.example.com");
}

TEST(ParseCustomResourceName, RefusesWhatIsNone) {
  // A group without a dot is one of Kubernetes' own, or a version was forgotten.
  for (const char* text :
       {"", "widgets", "configmaps.v1.", "configmaps.v1.core", "configmaps.x",
        "widgets.example.com", "widgets.v1.com", "deployments.apps", "../secrets.v1.example.com",
        "widgets.v1/x.example.com", "Widgets.v1.example.com", "widgets..example.com"}) {
    EXPECT_FALSE(ParseCustomResourceName(text).ok()) << text;
  }
}

TEST(ParseCustomResourceName, TheCoreGroupHasNoName) {
  const auto name = ParseCustomResourceName("configmaps.v1");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->group, "");
  EXPECT_EQ(name->full_name(), "configmaps.v1");
  EXPECT_EQ(name->api_version(), "v1");
  EXPECT_EQ(name->path(), "/api/v1/configmaps");
  EXPECT_EQ(name->path("a", "c"), "/api/v1/namespaces/a/configmaps/c");
  EXPECT_TRUE(IsOwnGroup(name->group));
}

TEST(ParseCustomResourceName, GroupsOfKubernetesMayLackADot) {
  const auto name = ParseCustomResourceName("jobs.v1.batch");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->full_name(), "jobs.v1.batch");
  EXPECT_EQ(name->api_version(), "batch/v1");
  EXPECT_EQ(name->path("a"), "/apis/batch/v1/namespaces/a/jobs");
  EXPECT_TRUE(IsOwnGroup(name->group));
  EXPECT_FALSE(IsWriteOnly(*name));
}

TEST(ParseCustomResourceName, SecretsAreNotForPlugins) {
  for (const char* text : {"secrets.v1", "secrets.v2beta1"}) {
    EXPECT_EQ(ParseCustomResourceName(text).status().message(),
              "Secrets cannot be read or written by plugins");
  }
  EXPECT_TRUE(ParseCustomResourceName("secrets.v1.example.com").ok()) << "another kind";
}

TEST(ParseCustomResourceName, PodsNodesAndNamespacesAreOnlyWritten) {
  for (const char* text : {"pods.v1", "nodes.v1", "namespaces.v1"})
    EXPECT_TRUE(IsWriteOnly(*ParseCustomResourceName(text))) << text;
  for (const char* text : {"configmaps.v1", "services.v1", "pods.v1.example.com"})
    EXPECT_FALSE(IsWriteOnly(*ParseCustomResourceName(text))) << text;
}

absl::StatusOr<ClusterObjectPtr> Decode(const char* json) {
  const auto document = ParseJson("test", json);
  EXPECT_TRUE(document.ok()) << document.status();
  return DecodeCustomObject(kWidgets, *document);
}

TEST(DecodeCustomObject, KeepsAllButManagedFields) {
  const auto object = Decode(
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u",
          "resourceVersion":"7","managedFields":[{"manager":"kubectl"}]},"spec":{"size":3}})");
  ASSERT_TRUE(object.ok()) << object.status();
  const v1beta1::GenericObject& custom = (*object)->object.generic_object();
  EXPECT_EQ(custom.resource(), kWidgets);
  EXPECT_EQ((*object)->key(), "a/w");
  EXPECT_EQ((*object)->uid(), "u");
  EXPECT_EQ((*object)->resource_version, "7");
  EXPECT_FALSE(custom.deleting());
  EXPECT_THAT(custom.json(), HasSubstr("\"size\":3"));
  EXPECT_THAT(custom.json(), Not(HasSubstr("managedFields")));
  EXPECT_EQ(KindOf((*object)->object), kWidgets);
}

TEST(DecodeCustomObject, RefusesObjectsWithoutIdentity) {
  EXPECT_FALSE(Decode(R"({"metadata":{"name":"w"}})").ok());
  EXPECT_FALSE(Decode(R"({"spec":{}})").ok());
  EXPECT_FALSE(Decode(R"({"metadata":[]})").ok());
  EXPECT_FALSE(Decode("[]").ok());
}

v1beta1::PutObject Put(const std::string& json) {
  v1beta1::PutObject put;
  put.set_resource(kWidgets);
  put.set_namespace_("a");
  put.set_name("w");
  put.set_json(json);
  return put;
}

TEST(BodyOf, FillsInWhatNamesTheObject) {
  v1beta1::PutObject put = Put(
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"other","namespace":"kube-system",
          "uid":"x","labels":{"l":"1"}},"spec":{}})");
  auto body = BodyOf(put);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(
      *body,
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a",)"
      R"("labels":{"l":"1"}},"spec":{}})");
  put.set_uid("u");
  put.set_resource_version("7");
  body = BodyOf(put);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_THAT(*body, HasSubstr("\"uid\":\"u\""));
  EXPECT_THAT(*body, HasSubstr("\"resourceVersion\":\"7\""));
}

TEST(BodyOf, RejectsObjectsOfOtherResources) {
  for (const char* json : {"", "[]", "{", "{}", R"({"apiVersion":"v1","kind":"Secret"})",
                           R"({"apiVersion":"example.com/v1"})",
                           R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":[]})"}) {
    EXPECT_FALSE(BodyOf(Put(json)).ok()) << json;
  }
}

}  // namespace
}  // namespace outboard::kube
