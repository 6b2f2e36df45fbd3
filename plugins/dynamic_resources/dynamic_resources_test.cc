#include "plugins/dynamic_resources/dynamic_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "proto/short_names.h"

namespace outboard::dynamic_resources {
namespace {

using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(DynamicResourcesCases, AllOfThem) {
  sdk::testing::RunCases(Descriptor(), "plugins/dynamic_resources/testdata");
}

v1beta1::ClusterObject ClassOf(const std::string& name, const std::string& resource) {
  v1beta1::ClusterObject object;
  object.mutable_device_class()->set_name(name);
  object.mutable_device_class()->set_extended_resource_name(resource);
  return object;
}

v1beta1::Node NodeWith(const std::string& name, const std::string& resource, int64_t amount) {
  v1beta1::Node node;
  node.set_uid(name);
  node.set_name(name);
  node.mutable_allocatable()->set_pods(110);
  if (amount >= 0) (*node.mutable_allocatable()->mutable_scalar())[resource] = amount;
  return node;
}

class DynamicResourcesTest : public ::testing::Test {
 protected:
  DynamicResourcesTest() : harness_(*PluginHarness::Create(Descriptor(), "")) {
    harness_->AddNode(NodeWith("plugin", "example.com/gpu", 4));
    harness_->AddNode(NodeWith("none-left", "example.com/gpu", 0));
    harness_->AddNode(NodeWith("without", "", -1));
  }
  v1beta1::Pod NewPod(const std::vector<std::pair<std::string, std::string>>& requests = {}) {
    // The harness does not replace a pod that it knows.
    PodBuilder pod("p" + std::to_string(++pods_));
    for (const auto& request : requests) pod.Requests({request});
    return pod.proto();
  }
  // Returns the rejected nodes, sorted; stores the reasons in reasons_.
  std::string Refused(const std::string& resource, const std::string& amount = "1") {
    const v1beta1::Pod pod = NewPod({{resource, amount}});
    if (harness_->PreFilter(pod).verdict.skip()) return "skip";
    std::string refused;
    reasons_.clear();
    for (const auto& [node, verdict] : harness_->Filter(pod)) {
      if (verdict.ok()) continue;
      EXPECT_EQ(verdict.code(), v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE);
      refused += node + ";";
      reasons_[node] = verdict.reasons().at(0);
    }
    return refused;
  }

  std::unique_ptr<PluginHarness> harness_;
  std::map<std::string, std::string> reasons_;
  int pods_ = 0;
};

std::string Text(const sdk::Verdict& verdict) {
  return ShortName(verdict.code()) + ": " +
         (verdict.reasons().empty() ? "" : verdict.reasons().at(0));
}

TEST_F(DynamicResourcesTest, PostFilterReportsWhetherPreFilterRan) {
  const v1beta1::Pod pod = NewPod();
  EXPECT_EQ(Text(harness_->PostFilter(pod)), "ERROR: not found");
  EXPECT_TRUE(harness_->PreFilter(pod).verdict.skip());
  EXPECT_EQ(Text(harness_->PostFilter(pod)), "UNSCHEDULABLE: no new claims to deallocate");
}

TEST_F(DynamicResourcesTest, PostFilterAfterARefusal) {
  const v1beta1::Pod with_claim = [&] {
    v1beta1::Pod pod = NewPod();
    pod.add_claims()->set_name("gpu");
    return pod;
  }();
  EXPECT_FALSE(harness_->PreFilter(with_claim).verdict.ok());
  EXPECT_EQ(Text(harness_->PostFilter(with_claim)), "UNSCHEDULABLE: no new claims to deallocate");

  harness_->AddObject(ClassOf("gpu-class", "example.com/nic"));
  const v1beta1::Pod with_resource = NewPod({{"example.com/nic", "1"}});
  EXPECT_EQ(harness_->Filter(with_resource).size(), 3);
  EXPECT_EQ(Text(harness_->PostFilter(with_resource)), "UNSCHEDULABLE: still not schedulable");
}

TEST_F(DynamicResourcesTest, EveryNodeScoresNothing) {
  const v1beta1::Pod pod = NewPod();
  EXPECT_FALSE(harness_->PreFilter(pod).verdict.rejected());
  const auto scores = harness_->Score(pod);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores, ElementsAre(Pair("none-left", 0), Pair("plugin", 0), Pair("without", 0)));
}

TEST_F(DynamicResourcesTest, NothingIsAskedOfTheHostWhereThereIsNothingToDo) {
  std::vector<int> never;
  for (const v1beta1::Interest& interest : Descriptor().interests) {
    EXPECT_TRUE(interest.any_field_set().empty());
    never.push_back(interest.extension_point());
  }
  EXPECT_THAT(never,
              ElementsAre(v1beta1::EXTENSION_POINT_PRE_ENQUEUE, v1beta1::EXTENSION_POINT_RESERVE));
  const v1beta1::Pod pod = NewPod();
  EXPECT_TRUE(harness_->PreEnqueue(pod).ok());
  EXPECT_TRUE(harness_->Reserve(pod, "plugin").ok());
  EXPECT_TRUE(harness_->Unreserve(pod, "plugin").empty());
}

TEST_F(DynamicResourcesTest, NodesWithoutADevicePluginAreRefused) {
  EXPECT_EQ(Refused("example.com/gpu"), "skip") << "no class";
  harness_->AddObject(ClassOf("gpu-class", "example.com/gpu"));
  EXPECT_EQ(Refused("example.com/gpu"), "none-left;without;");
  EXPECT_EQ(
      reasons_["without"],
      "pod uses resource example.com/gpu of device class \"gpu-class\", which the node has no "
      "device plugin for, which plugin DynamicResources decides; this host does not serve it "
      "yet");
  EXPECT_EQ(Refused("example.com/gpu", "0"), "skip");
  EXPECT_EQ(Refused("example.com/nic"), "skip");
  EXPECT_EQ(Refused("cpu"), "skip");
  // Every class also provides a resource of its own name.
  EXPECT_EQ(Refused("deviceclass.resource.kubernetes.io/gpu-class"), "none-left;plugin;without;");
}

TEST_F(DynamicResourcesTest, OtherExtendedResourcesMustBeKnownToTheNode) {
  harness_->AddObject(ClassOf("gpu-class", "example.com/nic"));
  harness_->AddNode(NodeWith("nic", "example.com/nic", 1));
  v1beta1::Pod pod =
      PodBuilder("two").Requests({{"example.com/gpu", "1"}, {"example.com/nic", "1"}}).proto();
  const auto verdicts = harness_->Filter(pod);
  EXPECT_EQ(verdicts.at("nic").reasons().at(0), "cannot fit resource");
  // NodeResourcesFit reports that none is left; the class comes first here.
  EXPECT_THAT(verdicts.at("none-left").reasons().at(0), ::testing::HasSubstr("gpu-class"));
}

TEST_F(DynamicResourcesTest, ClassesThatChangeAndGo) {
  harness_->AddObject(ClassOf("b", "example.com/gpu"));
  harness_->AddObject(ClassOf("a", "example.com/gpu"));
  harness_->AddObject(ClassOf("b", "example.com/nic"));
  EXPECT_EQ(Refused("example.com/gpu"), "none-left;without;") << "the other class is still there";
  EXPECT_EQ(Refused("example.com/nic"), "none-left;plugin;without;");
  harness_->RemoveObject(ClassOf("a", "example.com/gpu"));
  EXPECT_EQ(Refused("example.com/gpu"), "skip");
  dynamic_cast<sdk::ClusterObserver&>(harness_->plugin()).OnReset();
  EXPECT_EQ(Refused("example.com/nic"), "skip");
}

TEST_F(DynamicResourcesTest, OnlyItsOwnUpdateHelpsAPod) {
  const v1beta1::Pod pod = NewPod();
  const v1beta1::Pod other = NewPod();
  sdk::ObjectChange change;
  change.resource = "UnscheduledPod";
  change.action = v1beta1::ClusterEvent::ACTION_UPDATE_OTHER;
  change.old_pod = change.new_pod = &pod;
  EXPECT_EQ(harness_->Hint(pod, change), "queue");
  change.old_pod = change.new_pod = &other;
  EXPECT_EQ(harness_->Hint(pod, change), "skip");
  change.action = v1beta1::ClusterEvent::ACTION_ADD;
  EXPECT_EQ(harness_->Hint(pod, change), "not registered");

  const v1beta1::ClusterObject device_class = ClassOf("a", "");
  change = sdk::ObjectChange();
  change.resource = "DeviceClass";
  change.action = v1beta1::ClusterEvent::ACTION_ADD;
  change.new_object = &device_class;
  EXPECT_EQ(harness_->Hint(pod, change), "queue");
  change.action = v1beta1::ClusterEvent::ACTION_DELETE;
  EXPECT_EQ(harness_->Hint(pod, change), "not registered");
}

TEST(DynamicResourcesArgsTest, AreValidated) {
  const auto problem = [](const char* args) {
    return std::string(PluginHarness::Create(Descriptor(), args).status().message());
  };
  EXPECT_EQ(problem(R"({"filterTimeout": "0s", "bindingTimeout": "1s"})"), "");
  EXPECT_EQ(problem(R"({"filterTimeout": "-1s"})"),
            R"(filterTimeout: Invalid value: "-1s": must be zero or positive)");
  EXPECT_EQ(problem(R"({"bindingTimeout": "0s"})"),
            R"(bindingTimeout: Invalid value: "0s": must be at least 1 second)");
  EXPECT_EQ(problem(R"({"bindingTimeout": "500ms"})"),
            R"(bindingTimeout: Invalid value: "500ms": must be at least 1 second)");
  EXPECT_NE(problem(R"({"filterTimeout": 5})"), "");
  EXPECT_NE(problem(R"({"timeout": "5s"})"), "");
}

}  // namespace
}  // namespace outboard::dynamic_resources
