#include "shim/hosts/host_info_check.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/hosts/version_skew.h"

namespace outboard::hosts {
namespace {

using ::testing::HasSubstr;
using v1beta1::GetHostInfoResponse;
using v1beta1::PluginInfo;

GetHostInfoResponse Good() {
  GetHostInfoResponse info;
  PluginInfo* plugin = info.add_plugins();
  plugin->set_name("Fit");
  plugin->add_extension_points(v1beta1::EXTENSION_POINT_FILTER);
  plugin->set_args_schema(std::string(64 << 10, ' '));
  plugin->add_wake_up_events()->set_resource("Node");
  plugin->add_needed_fields("Pod.spec.containers[*].args");
  plugin->add_interests()->add_any_field_set("spec.resourceClaims");
  plugin->add_declared_resources()->set_resource("jobs.v1.example.com");
  return info;
}

TEST(CheckHostInfo, TakesWhatTheContractAllows) {
  EXPECT_TRUE(CheckHostInfo(Good()).ok()) << CheckHostInfo(Good());
  GetHostInfoResponse many = Good();
  for (int i = 1; i < 256; ++i) *many.add_plugins() = many.plugins(0);
  EXPECT_TRUE(CheckHostInfo(many).ok()) << CheckHostInfo(many);
}

TEST(CheckHostInfo, TakesAnInterestInEveryPodAtPreBind) {
  GetHostInfoResponse info = Good();
  v1beta1::Interest* const interest = info.mutable_plugins(0)->add_interests();
  interest->set_extension_point(v1beta1::EXTENSION_POINT_PRE_BIND);
  interest->set_every_pod(true);
  EXPECT_TRUE(CheckHostInfo(info).ok()) << CheckHostInfo(info);
}

TEST(CheckHostInfo, PlansRequireTheFusedCycle) {
  for (const auto capability : {v1beta1::CAPABILITY_BATCH, v1beta1::CAPABILITY_GROUP_PLAN}) {
    GetHostInfoResponse info = Good();
    info.add_capabilities(capability);
    const absl::Status checked = CheckHostInfo(info);
    EXPECT_TRUE(absl::IsFailedPrecondition(checked)) << checked;
    EXPECT_THAT(std::string(checked.message()),
                HasSubstr("which requires the capability FUSED_CYCLE"));
    info.add_capabilities(v1beta1::CAPABILITY_FUSED_CYCLE);
    EXPECT_TRUE(CheckHostInfo(info).ok()) << CheckHostInfo(info);
  }
}

TEST(UnknownActions, NamesPluginAndNumber) {
  GetHostInfoResponse info = Good();
  v1beta1::ClusterEvent* event = info.mutable_plugins(0)->mutable_wake_up_events(0);
  event->add_actions(v1beta1::ClusterEvent::ACTION_ADD);
  EXPECT_EQ(UnknownActions(info), "");
  event->add_actions(static_cast<v1beta1::ClusterEvent::Action>(77));
  *info.add_plugins() = info.plugins(0);
  info.mutable_plugins(1)->set_name("Other");
  EXPECT_EQ(UnknownActions(info),
            "this shim does not know these registered events, and reads them as every action on "
            "the resource: action 77 on Node of plugin Fit, action 77 on Node of plugin Other");
}

TEST(CheckIdentity, EveryLengthAndCountHasABound) {
  handshake::v1::HandshakeResponse good;
  good.add_contract_versions("v1beta1");
  good.set_instance("a");
  good.set_build("0.1.0");
  good.set_build_digest(std::string(128, 'd'));
  EXPECT_TRUE(CheckIdentity(good).ok()) << CheckIdentity(good);
  const auto refuses = [&](const char* says, auto change) {
    auto bad = good;
    change(&bad);
    EXPECT_THAT(std::string(CheckIdentity(bad).message()), HasSubstr(says));
  };
  const std::string kLong(100000, 'x');
  refuses("contract versions, more than 16", [&](auto* identity) {
    for (int i = 0; i < 1000; ++i) identity->add_contract_versions("v1");
  });
  refuses("contract versions of 100000 bytes",
          [&](auto* identity) { identity->add_contract_versions(kLong); });
  refuses("a build of 100000 bytes, more than 256",
          [&](auto* identity) { identity->set_build(kLong); });
  refuses("a build_digest of 129 bytes, more than 128",
          [&](auto* identity) { identity->set_build_digest(std::string(129, 'd')); });
}

// Every length and every count of the message has a bound.
TEST(CheckHostInfo, RefusesWhatHasNoEnd) {
  const std::string kLong(100000, 'x');
  struct Case {
    const char* says;
    std::function<void(GetHostInfoResponse*)> make;
  };
  const auto plugin = [](GetHostInfoResponse* info) { return info->mutable_plugins(0); };
  const auto many = [](auto add) {
    for (int i = 0; i < 1000; ++i) add();
  };
  const Case kCases[] = {
      {"plugins, more than 256",
       [&](auto* info) { many([&] { info->add_plugins()->set_name("p"); }); }},
      {"capabilities, more than 64",
       [&](auto* info) { many([&] { info->add_capabilities(v1beta1::CAPABILITY_BATCH); }); }},
      {"has no name", [&](auto* info) { plugin(info)->clear_name(); }},
      {"a name of 100000 bytes", [&](auto* info) { plugin(info)->set_name(kLong); }},
      {"extension points, more than 64",
       [&](auto* info) {
         many([&] { plugin(info)->add_extension_points(v1beta1::EXTENSION_POINT_FILTER); });
       }},
      {"a schema of 100000 bytes", [&](auto* info) { plugin(info)->set_args_schema(kLong); }},
      {"events, more than 256",
       [&](auto* info) { many([&] { plugin(info)->add_wake_up_events(); }); }},
      {"an event's resource of 100000 bytes",
       [&](auto* info) { plugin(info)->mutable_wake_up_events(0)->set_resource(kLong); }},
      {"actions of an event, more than 64",
       [&](auto* info) {
         many([&] {
           plugin(info)->mutable_wake_up_events(0)->add_actions(v1beta1::ClusterEvent::ACTION_ADD);
         });
       }},
      {"needed fields, more than 256",
       [&](auto* info) { many([&] { plugin(info)->add_needed_fields("f"); }); }},
      {"needed fields of 100000 bytes",
       [&](auto* info) { plugin(info)->add_needed_fields(kLong); }},
      {"optional fields, more than 256",
       [&](auto* info) { many([&] { plugin(info)->add_optional_fields("f"); }); }},
      {"optional fields of 100000 bytes",
       [&](auto* info) { plugin(info)->add_optional_fields(kLong); }},
      {"interests, more than 256",
       [&](auto* info) { many([&] { plugin(info)->add_interests(); }); }},
      {"fields of an interest, more than 256",
       [&](auto* info) {
         many([&] { plugin(info)->mutable_interests(0)->add_any_field_set("f"); });
       }},
      {"fields of an interest of 100000 bytes",
       [&](auto* info) { plugin(info)->mutable_interests(0)->add_any_field_set(kLong); }},
      {"an interest that names fields and no_pod, or neither",
       [&](auto* info) { plugin(info)->add_interests(); }},
      {"an interest that names fields and no_pod, or neither",
       [&](auto* info) { plugin(info)->mutable_interests(0)->set_no_pod(true); }},
      {"an interest that names fields and no_pod, or neither",
       [&](auto* info) {
         plugin(info)->mutable_interests(0)->clear_any_field_set();
         plugin(info)->mutable_interests(0)->set_every_pod(true);
       }},
      {"an interest in no pod and in every pod",
       [&](auto* info) {
         v1beta1::Interest* const interest = plugin(info)->mutable_interests(0);
         interest->clear_any_field_set();
         interest->set_extension_point(v1beta1::EXTENSION_POINT_PRE_BIND);
         interest->set_no_pod(true);
         interest->set_every_pod(true);
       }},
      {"a reason of 100000 bytes",
       [&](auto* info) { plugin(info)->mutable_interests(0)->set_post_filter_reason(kLong); }},
      {"custom resources, more than 256",
       [&](auto* info) { many([&] { plugin(info)->add_declared_resources(); }); }},
      {"a custom resource of 100000 bytes",
       [&](auto* info) { plugin(info)->mutable_declared_resources(0)->set_resource(kLong); }},
      {"verbs, more than 64",
       [&](auto* info) {
         many([&] {
           plugin(info)->mutable_declared_resources(0)->add_verbs(
               v1beta1::DeclaredResource::VERB_CREATE);
         });
       }},
  };
  for (const Case& bad : kCases) {
    GetHostInfoResponse info = Good();
    bad.make(&info);
    const absl::Status checked = CheckHostInfo(info);
    EXPECT_TRUE(absl::IsFailedPrecondition(checked)) << bad.says;
    EXPECT_THAT(std::string(checked.message()), HasSubstr(bad.says));
    EXPECT_LT(checked.message().size(), 500u);
  }
}

TEST(VersionSkew, MoreThanOneMinorVersion) {
  EXPECT_FALSE(AreTooFarApart("0.1.0", "0.1.0"));
  EXPECT_FALSE(AreTooFarApart("0.1.0", "0.2.7"));
  EXPECT_FALSE(AreTooFarApart("0.2.0", "v0.1.0-rc.1"));
  EXPECT_TRUE(AreTooFarApart("0.1.0", "0.3.0"));
  EXPECT_TRUE(AreTooFarApart("0.3.0", "0.1"));
  EXPECT_TRUE(AreTooFarApart("0.1.0", "1.1.0"));
}

TEST(VersionSkew, BuildsThatAreNoVersionsAreNotCompared) {
  for (const char* build : {"dev", "", "fake", "gpu-host 7", "7", "1.2.3.4", "0.9x", "0.-9.0", "."})
    EXPECT_FALSE(AreTooFarApart("0.1.0", build)) << build;
  EXPECT_FALSE(AreTooFarApart("dev", "0.9.0"));
}

}  // namespace
}  // namespace outboard::hosts
