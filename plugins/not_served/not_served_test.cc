#include "plugins/not_served/not_served.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::not_served {
namespace {

TEST(NotServedTest, Cases) { sdk::testing::RunCases(Descriptor(), "plugins/not_served/testdata"); }

v1alpha1::ClusterObject ClassOf(const std::string& name, const std::string& resource) {
  v1alpha1::ClusterObject object;
  object.mutable_device_class()->set_name(name);
  object.mutable_device_class()->set_extended_resource_name(resource);
  return object;
}

v1alpha1::Node NodeWith(const std::string& name, const std::string& resource, int64_t amount) {
  v1alpha1::Node node;
  node.set_uid(name);
  node.set_name(name);
  node.mutable_allocatable()->set_pods(110);
  if (amount >= 0) (*node.mutable_allocatable()->mutable_extended())[resource] = amount;
  return node;
}

class DeviceClassTest : public ::testing::Test {
 protected:
  DeviceClassTest()
      : harness_(*sdk::testing::PluginHarness::Create(Descriptor(), "")),
        observer_(dynamic_cast<sdk::ClusterObserver&>(harness_->plugin())) {
    harness_->AddNode(NodeWith("plugin", "example.com/gpu", 4));
    harness_->AddNode(NodeWith("none-left", "example.com/gpu", 0));
    harness_->AddNode(NodeWith("without", "", -1));
  }
  // The nodes that are refused, sorted; why goes into reason_.
  std::string Refused(const std::string& resource, const std::string& amount = "1") {
    // The harness keeps a pod that it knows as it is.
    sdk::testing::PodBuilder pod("p" + std::to_string(++pods_));
    pod.Requests({{resource, amount}});
    if (harness_->PreFilter(pod.proto()).verdict.skip()) return "skip";
    std::string refused;
    for (const auto& [node, verdict] : harness_->Filter(pod.proto())) {
      if (verdict.ok()) continue;
      refused += node + ";";
      reason_ = verdict.reasons().at(0);
    }
    return refused;
  }

  std::unique_ptr<sdk::testing::PluginHarness> harness_;
  sdk::ClusterObserver& observer_;
  std::string reason_;
  int pods_ = 0;
};

TEST_F(DeviceClassTest, NodesWithoutADevicePluginAreRefused) {
  EXPECT_EQ(Refused("example.com/gpu"), "skip") << "no class";
  const v1alpha1::ClusterObject gpu = ClassOf("gpu-class", "example.com/gpu");
  observer_.OnObjectChanged(nullptr, gpu);
  EXPECT_EQ(Refused("example.com/gpu"), "none-left;without;");
  EXPECT_EQ(
      reason_,
      "pod uses resource example.com/gpu of device class \"gpu-class\", which the node has no "
      "device plugin for, which plugin DynamicResources decides; this host does not serve it "
      "yet");
  EXPECT_EQ(Refused("example.com/gpu", "0"), "skip");
  EXPECT_EQ(Refused("example.com/nic"), "skip");
  EXPECT_EQ(Refused("cpu"), "skip");
  // Every class stands for a resource of its own name, too.
  EXPECT_EQ(Refused("deviceclass.resource.kubernetes.io/gpu-class"), "none-left;plugin;without;");
}

TEST_F(DeviceClassTest, ClassesThatChangeAndGo) {
  const v1alpha1::ClusterObject gpu = ClassOf("b", "example.com/gpu");
  const v1alpha1::ClusterObject same = ClassOf("a", "example.com/gpu");
  const v1alpha1::ClusterObject nic = ClassOf("b", "example.com/nic");
  observer_.OnObjectChanged(nullptr, gpu);
  observer_.OnObjectChanged(nullptr, same);
  observer_.OnObjectChanged(&gpu, nic);
  EXPECT_EQ(Refused("example.com/gpu"), "none-left;without;") << "the other class is still there";
  EXPECT_EQ(Refused("example.com/nic"), "none-left;plugin;without;");
  observer_.OnObjectRemoved(same);
  EXPECT_EQ(Refused("example.com/gpu"), "skip");
  observer_.OnReset();
  EXPECT_EQ(Refused("example.com/nic"), "skip");
}

}  // namespace
}  // namespace outboard::not_served
