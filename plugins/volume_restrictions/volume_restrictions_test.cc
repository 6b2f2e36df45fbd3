#include "plugins/volume_restrictions/volume_restrictions.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/case_runner.h"
#include "plugin_host/sdk/testing/plugin_harness.h"

namespace outboard::volume_restrictions {
namespace {

TEST(VolumeRestrictionsTest, Cases) {
  sdk::testing::RunCases(Descriptor(), "plugins/volume_restrictions/testdata");
}

TEST(VolumeRestrictionsTest, AClaimIsFreeOnceItsLastPodIsGone) {
  auto harness = *sdk::testing::PluginHarness::Create(Descriptor());
  harness->AddNode(sdk::testing::NodeBuilder("n1"));
  v1beta1::ClusterObject claim;
  claim.mutable_persistent_volume_claim()->set_namespace_("default");
  claim.mutable_persistent_volume_claim()->set_name("data");
  claim.mutable_persistent_volume_claim()->add_access_modes("ReadWriteOncePod");
  harness->AddObject(claim);
  auto with_claim = [](const std::string& name) {
    sdk::testing::PodBuilder pod(name);
    v1beta1::Volume* volume = pod.proto().add_volumes();
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name("data");
    return pod;
  };
  harness->AddPod(with_claim("a").OnNode("n1"));
  harness->AddPod(with_claim("b"));
  harness->Place("default/b", v1beta1::PLACEMENT_STATE_ASSUMED, "n1");
  harness->RemovePod("default/a");
  EXPECT_TRUE(harness->PreFilter(with_claim("p")).verdict.ok());
  harness->Place("default/b", v1beta1::PLACEMENT_STATE_UNPLACED, "");
  EXPECT_TRUE(harness->PreFilter(with_claim("p")).verdict.skip());
}

}  // namespace
}  // namespace outboard::volume_restrictions
