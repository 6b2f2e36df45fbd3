#include "plugins/node_volume_limits/node_volume_limits.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/object_yaml.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::node_volume_limits {
namespace {

TEST(NodeVolumeLimitsTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/node_volume_limits/testdata");
}

TEST(NodeVolumeLimitsTest, FollowsVolumeAttachments) {
  auto harness = *sdk::testing::PluginHarness::Create(Descriptor());
  auto object = [](const char* yaml) { return *sdk::testing::ObjectFromYaml(YAML::Load(yaml)); };
  for (const char* name : {"n1", "n2"}) harness->AddNode(sdk::testing::NodeBuilder(name));
  for (const char* yaml :
       {"{csiNode: {name: n1, drivers: [{name: d, allocatableCount: 1}]}}",
        "{csiNode: {name: n2, drivers: [{name: d, allocatableCount: 1}]}}",
        "{persistentVolume: {name: pv1, csi: {driver: d, volumeHandle: h1}}}",
        "{persistentVolume: {name: pv2, csi: {driver: d, volumeHandle: h2}}}",
        "{persistentVolumeClaim: {name: c, volumeName: pv2}}",
        "{volumeAttachment: {name: a, attacher: d, nodeName: n1, persistentVolumeName: pv1}}"}) {
    harness->AddObject(object(yaml));
  }
  sdk::testing::PodBuilder pod("p");
  v1beta1::Volume* volume = pod.proto().add_volumes();
  volume->set_source("persistentVolumeClaim");
  volume->set_claim_name("c");
  auto verdicts = harness->Filter(pod);
  EXPECT_FALSE(verdicts.at("n1").ok());
  EXPECT_TRUE(verdicts.at("n2").ok());
  const auto moved =
      object("{volumeAttachment: {name: a, attacher: d, nodeName: n2, persistentVolumeName: pv1}}");
  harness->AddObject(moved);
  verdicts = harness->Filter(pod);
  EXPECT_TRUE(verdicts.at("n1").ok());
  EXPECT_FALSE(verdicts.at("n2").ok());
  harness->RemoveObject(moved);
  EXPECT_TRUE(harness->Filter(pod).at("n2").ok());
}

}  // namespace
}  // namespace outboard::node_volume_limits
