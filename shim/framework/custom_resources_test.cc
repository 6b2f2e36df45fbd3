#include "shim/framework/custom_resources.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outboard::framework {
namespace {

using ::testing::HasSubstr;
using v1beta1::DeclaredResource;

constexpr char kWidgets[] = "widgets.v1.example.com";

class CheckObjectWriteTest : public ::testing::Test {
 protected:
  CheckObjectWriteTest() {
    v1beta1::PluginInfo* plugin = host_.add_plugins();
    plugin->set_name("Keeper");
    DeclaredResource* resource = plugin->add_declared_resources();
    resource->set_resource(kWidgets);
    for (const auto verb : {DeclaredResource::VERB_CREATE, DeclaredResource::VERB_UPDATE,
                            DeclaredResource::VERB_DELETE})
      resource->add_verbs(verb);
    host_.add_plugins()->set_name("Other");
  }

  std::string Say(const std::string& effect) const {
    v1beta1::Effect parsed;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("key: 'k' " + effect, &parsed));
    return std::string(CheckObjectWrite(parsed, host_, rules_).message());
  }

  v1beta1::GetHostInfoResponse host_;
  std::vector<CustomResourceRule> rules_ = {
      {kWidgets, {DeclaredResource::VERB_CREATE, DeclaredResource::VERB_UPDATE}, {"team-a"}}};
};

TEST_F(CheckObjectWriteTest, LetsThroughWhatIsDeclaredAndAllowed) {
  EXPECT_EQ(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' "
                "namespace: 'team-a' name: 'w' json: '{}' }"),
            "");
  EXPECT_EQ(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' "
                "namespace: 'team-a' name: 'w' uid: 'u' resource_version: '1' json: '{}' }"),
            "");
  EXPECT_EQ(Say("plugin: 'Keeper' select_node { name: 'c' }"), "") << "checked elsewhere";
}

TEST_F(CheckObjectWriteTest, RefusesWhatTheConfigurationDoesNotAllow) {
  EXPECT_THAT(
      Say("plugin: 'Keeper' delete_object { resource: 'widgets.v1.example.com' "
          "namespace: 'team-a' name: 'w' uid: 'u' resource_version: '1' }"),
      HasSubstr("Keeper wants to delete widgets.v1.example.com team-a/w: customResources in "
                "the configuration of the shim do not allow that"));
  EXPECT_THAT(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' "
                  "namespace: 'kube-system' name: 'w' json: '{}' }"),
              HasSubstr("do not allow that"));
  EXPECT_THAT(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' name: 'w' "
                  "json: '{}' }"),
              HasSubstr("do not allow that"))
      << "an object without a namespace is in no allowed namespace";
}

TEST_F(CheckObjectWriteTest, APatchNeedsItsVerbAndIdentifiesTheObject) {
  const auto patch = [&](const char* rest) {
    return Say(
        absl::StrCat("plugin: 'Keeper' patch_object { resource: 'widgets.v1.example.com' "
                     "namespace: 'team-a' name: 'w' ",
                     rest, " }"));
  };
  EXPECT_THAT(patch("uid: 'u' json: '{}'"), HasSubstr("the plugin did not declare this"));
  host_.mutable_plugins(0)->mutable_declared_resources(0)->add_verbs(DeclaredResource::VERB_PATCH);
  EXPECT_THAT(patch("uid: 'u' json: '{}'"),
              HasSubstr("Keeper wants to patch widgets.v1.example.com team-a/w: customResources"));
  rules_[0].verbs.push_back(DeclaredResource::VERB_PATCH);
  EXPECT_EQ(patch("uid: 'u' json: '{}'"), "");
  EXPECT_EQ(patch("after: 'k' json: '{\"metadata\":{}}'"), "");
  EXPECT_THAT(patch("uid: 'u' status: true json: '{}'"),
              HasSubstr("wants to patch_status widgets"));
  EXPECT_THAT(patch("json: '{}'"), HasSubstr("without identifying it"));
  EXPECT_THAT(patch("uid: 'u' after: 'k' json: '{}'"), HasSubstr("without identifying it"));
  EXPECT_THAT(patch("uid: 'u' json: '[]'"), HasSubstr("not a JSON object"));
  EXPECT_THAT(patch("uid: 'u' json: '{\"metadata\":[]}'"), HasSubstr("not a JSON object"));
}

TEST_F(CheckObjectWriteTest, AnOptionalResourceIsNotABadAnswer) {
  v1beta1::Effect effect;
  effect.set_plugin("Keeper");
  v1beta1::DeleteObject* del = effect.mutable_delete_object();
  del->set_resource(kWidgets);
  del->set_name("w");
  del->set_uid("u");
  del->set_resource_version("1");
  EXPECT_TRUE(absl::IsInternal(CheckObjectWrite(effect, host_, rules_)));
  host_.mutable_plugins(0)->mutable_declared_resources(0)->set_optional(true);
  EXPECT_TRUE(absl::IsPermissionDenied(CheckObjectWrite(effect, host_, rules_)));
}

TEST_F(CheckObjectWriteTest, RefusesWhatThePluginDidNotDeclare) {
  EXPECT_THAT(Say("plugin: 'Other' put_object { resource: 'widgets.v1.example.com' "
                  "namespace: 'team-a' name: 'w' json: '{}' }"),
              HasSubstr("did not declare"));
  EXPECT_THAT(Say("plugin: 'Keeper' put_object { resource: 'secrets.v1.example.com' "
                  "namespace: 'team-a' name: 'w' json: '{}' }"),
              HasSubstr("did not declare"));
  EXPECT_THAT(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' status: true "
                  "namespace: 'team-a' name: 'w' uid: 'u' resource_version: '1' json: '{}' }"),
              HasSubstr("did not declare"));
  EXPECT_THAT(Say("plugin: 'Stranger' put_object { resource: 'widgets.v1.example.com' "
                  "namespace: 'team-a' name: 'w' json: '{}' }"),
              HasSubstr("no such plugin"));
}

TEST_F(CheckObjectWriteTest, RefusesWritesWithoutPreconditions) {
  for (const char* write :
       {"put_object { resource: 'widgets.v1.example.com' namespace: 'team-a' name: 'w' uid: 'u' }",
        "put_object { resource: 'widgets.v1.example.com' namespace: 'team-a' name: 'w' "
        "resource_version: '1' }",
        "put_object { resource: 'widgets.v1.example.com' namespace: 'team-a' name: 'w' status: "
        "true }",
        "delete_object { resource: 'widgets.v1.example.com' namespace: 'team-a' name: 'w' uid: 'u' "
        "}"}) {
    EXPECT_THAT(Say(std::string("plugin: 'Keeper' ") + write), HasSubstr("preconditions")) << write;
  }
}

TEST_F(CheckObjectWriteTest, RefusesNamesThatLeadElsewhere) {
  for (const char* name : {"", "../../../api/v1/secrets/s", "w?x=1", "W", "w/status"}) {
    EXPECT_THAT(Say(std::string("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' "
                                "namespace: 'team-a' json: '{}' name: '") +
                    name + "' }"),
                HasSubstr("invalid name"))
        << name;
  }
  EXPECT_THAT(Say("plugin: 'Keeper' put_object { resource: 'widgets.v1.example.com' "
                  "namespace: 'team-a/x' name: 'w' json: '{}' }"),
              HasSubstr("invalid namespace"));
}

TEST_F(CheckObjectWriteTest, RefusesObjectsThatAreTooLarge) {
  v1beta1::Effect effect;
  effect.set_plugin("Keeper");
  v1beta1::PutObject* put = effect.mutable_put_object();
  put->set_resource(kWidgets);
  put->set_namespace_("team-a");
  put->set_name("w");
  put->set_json(std::string((256 << 10) + 1, ' '));
  EXPECT_THAT(std::string(CheckObjectWrite(effect, host_, rules_).message()),
              HasSubstr("more than 262144"));
}

TEST_F(CheckObjectWriteTest, AnEventNeedsTheResourceButNoVerb) {
  const std::string event =
      "namespace: 'team-a' name: 'w' uid: 'u' kind: 'Widget' type: TYPE_NORMAL reason: 'R' "
      "action: 'A' note: 'n' }";
  const std::string of_widget = "record_event { resource: 'widgets.v1.example.com' ";
  EXPECT_EQ(Say("plugin: 'Keeper' " + of_widget + event), "");
  EXPECT_THAT(Say("plugin: 'Other' " + of_widget + event), HasSubstr("did not declare"));
  EXPECT_THAT(Say("plugin: 'Keeper' record_event { resource: 'configmaps.v1' " + event),
              HasSubstr("did not declare"));
  EXPECT_THAT(Say("plugin: 'Keeper' " + of_widget + "namespace: 'team-b' name: 'w' }"),
              HasSubstr("Keeper wants to record an event about widgets.v1.example.com team-b/w: "
                        "customResources"));
  rules_.clear();
  EXPECT_THAT(Say("plugin: 'Keeper' " + of_widget + event), HasSubstr("do not allow that"));
}

TEST_F(CheckObjectWriteTest, ObjectsOfKubernetesNeedTheSameRights) {
  const std::string put =
      "plugin: 'Keeper' put_object { resource: 'configmaps.v1' namespace: 'team-a' name: 'c' "
      "json: '{}' }";
  EXPECT_THAT(Say(put), HasSubstr("did not declare"));
  DeclaredResource* const declared = host_.mutable_plugins(0)->add_declared_resources();
  declared->set_resource("configmaps.v1");
  declared->add_verbs(DeclaredResource::VERB_CREATE);
  EXPECT_THAT(Say(put), HasSubstr("do not allow that"));
  rules_.push_back({"configmaps.v1", {DeclaredResource::VERB_CREATE}, {"team-a"}});
  EXPECT_EQ(Say(put), "");
}

}  // namespace
}  // namespace outboard::framework
