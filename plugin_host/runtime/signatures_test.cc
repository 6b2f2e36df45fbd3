#include "plugin_host/runtime/signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin_host/cache/cluster_cache.h"
#include "plugin_host/sdk/plugin_registry.h"
#include "plugin_host/sdk/testing/builders.h"

namespace outboard::runtime {
namespace {

using sdk::testing::PodBuilder;

class NothingToSay : public sdk::Plugin, public sdk::NodeFilterPlugin {
 public:
  sdk::Verdict FilterNode(const sdk::Attempt&, const sdk::NodeView&) const override {
    return sdk::Verdict::Success();
  }
};

class Nowhere : public PushTarget {
  void Decide(const std::string&, const sdk::WaitDecision&) override {}
  void SortKeysChanged(absl::Span<const std::string>) override {}
  void GateChanged(absl::Span<const std::string>) override {}
  void Activate(const std::string&, absl::Span<const std::string>) override {}
  void Write(const std::string&, v1beta1::Effect) override {}
};

class SignaturesTest : public ::testing::Test {
 protected:
  void Register(const std::string& name, std::optional<std::vector<std::string>> signature) {
    sdk::PluginDescriptor d;
    d.name = name;
    d.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
    d.signature = std::move(signature);
    d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
      return std::make_unique<NothingToSay>();
    };
    ASSERT_TRUE(registry_.Add(d).ok());
  }
  std::unique_ptr<Profile> Make(const std::vector<std::string>& plugins) {
    v1beta1::ProfileConfig config;
    config.set_name("p");
    v1beta1::PointConfig* point = config.add_points();
    point->set_extension_point(v1beta1::EXTENSION_POINT_FILTER);
    for (const std::string& plugin : plugins) point->add_plugins(plugin);
    google::protobuf::RepeatedPtrField<v1beta1::ConfigProblem> problems;
    auto profile = Profile::Create(config, registry_, &cache_, &nowhere_, &problems);
    EXPECT_TRUE(problems.empty());
    return profile;
  }

  sdk::PluginRegistry registry_;
  host_cache::ClusterCache cache_;
  Nowhere nowhere_;
  Signatures signatures_;
};

TEST_F(SignaturesTest, PodsThatAgreeInAllThatIsLookedAtShareOne) {
  Register("A", {{"metadata.labels['a']", "spec.priority"}});
  Register("B", {{"spec.containers"}});
  const auto profile = Make({"A", "B"});
  PodBuilder pod("p1");
  pod.Label("a", "1").Label("b", "1").Requests({{"cpu", "1"}});
  const std::string first = signatures_.Of(*profile, pod);
  EXPECT_FALSE(first.empty());
  EXPECT_LE(first.size(), 64u);
  PodBuilder same("p2");
  same.Label("a", "1").Label("b", "2").Requests({{"cpu", "1"}});
  EXPECT_EQ(signatures_.Of(*profile, same), first);
  for (PodBuilder other : {PodBuilder("p").Label("a", "2").Requests({{"cpu", "1"}}),
                           PodBuilder("p").Requests({{"cpu", "1"}}),
                           PodBuilder("p").Label("a", "1").Requests({{"cpu", "2"}})}) {
    EXPECT_NE(signatures_.Of(*profile, other), first);
  }
  same.proto().set_priority(1);
  EXPECT_NE(signatures_.Of(*profile, same), first);
}

TEST_F(SignaturesTest, OnePluginThatDoesNotSayIsEnoughForNone) {
  Register("A", {{"spec.priority"}});
  Register("Silent", std::nullopt);
  EXPECT_EQ(signatures_.Of(*Make({"A", "Silent"}), PodBuilder("p")), "");
  EXPECT_NE(signatures_.Of(*Make({"A"}), PodBuilder("p")), "");
}

TEST_F(SignaturesTest, ANumberIsNeverUsedTwice) {
  Register("A", {{"metadata.name"}});
  const auto profile = Make({"A"});
  Signatures few(2);
  std::vector<std::string> seen;
  for (const char* name : {"a", "b", "c", "a"}) seen.push_back(few.Of(*profile, PodBuilder(name)));
  few.Clear();
  seen.push_back(few.Of(*profile, PodBuilder("c")));
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

TEST_F(SignaturesTest, AnEphemeralVolumeIsThePodsOwn) {
  Register("A", {{"spec.volumes"}});
  const auto profile = Make({"A"});
  PodBuilder a("a"), b("b");
  for (PodBuilder* pod : {&a, &b}) {
    v1beta1::Volume* volume = pod->proto().add_volumes();
    volume->set_name("v");
    volume->set_source("emptyDir");
  }
  EXPECT_EQ(signatures_.Of(*profile, a), signatures_.Of(*profile, b));
  for (PodBuilder* pod : {&a, &b}) pod->proto().mutable_volumes(0)->set_source("ephemeral");
  EXPECT_NE(signatures_.Of(*profile, a), signatures_.Of(*profile, b));
}

TEST(PluginRegistry, RejectsASignatureOfAnUnknownPart) {
  sdk::PluginDescriptor d;
  d.name = "A";
  d.extension_points = {v1beta1::EXTENSION_POINT_FILTER};
  d.create = [](const sdk::PluginContext&) -> absl::StatusOr<std::unique_ptr<sdk::Plugin>> {
    return std::make_unique<NothingToSay>();
  };
  d.signature = {{"spec.container"}};
  EXPECT_THAT(std::string(sdk::PluginRegistry().Add(d).message()),
              ::testing::HasSubstr("unknown part of a pod \"spec.container\""));
}

}  // namespace
}  // namespace outboard::runtime
