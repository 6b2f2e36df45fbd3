#include "plugins/atomic_replica_coordinator/min_resources.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plugin_host/sdk/group_plugin.h"
#include "plugin_host/sdk/testing/builders.h"
#include "plugin_host/sdk/testing/object_store.h"
#include "plugin_host/sdk/testing/plugin_harness.h"
#include "plugins/atomic_replica_coordinator/atomic_replica_coordinator.h"

namespace outboard::atomic_replica_coordinator {
namespace {

using sdk::testing::NodeBuilder;
using sdk::testing::ObjectStore;
using sdk::testing::PluginHarness;
using sdk::testing::PodBuilder;

class MinResourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    harness_ = *PluginHarness::Create(Descriptor());
    store_ = std::make_unique<ObjectStore>(harness_.get());
    for (const char* name : {"n1", "n2"}) {
      harness_->AddNode(NodeBuilder(name).Allocatable(
          {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "4"}, {"nvidia.com/gpu", "2"}}));
    }
  }
  static v1beta1::Pod Member(const std::string& name) {
    return PodBuilder(name)
        .Label("scheduling.x-k8s.io/pod-group", "train")
        .Requests({{"cpu", "1"}, {"nvidia.com/gpu", "1"}});
  }
  // Returns why the group of two is not searched a place for.
  std::string ShortOf(const std::string& min_resources, int min_member = 2) {
    store_->Apply("podgroups.v1alpha1.scheduling.x-k8s.io", "default", "train",
                  absl::StrCat(R"({"spec": {"minMember": )", min_member, R"(, "minResources": )",
                               min_resources, "}}"));
    for (int i = 0; i < min_member; ++i) {
      if (harness_->cluster().FindPod(absl::StrCat("default/m", i)) == nullptr)
        harness_->AddPod(Member(absl::StrCat("m", i)));
    }
    sdk::PluginState state;
    const std::string asked = absl::StrCat("default/m", min_member - 1);
    const sdk::Attempt attempt(1, sdk::PodView(harness_->cluster().FindPod(asked)),
                               harness_->cluster(), absl::UnixEpoch(), &state);
    const auto group = dynamic_cast<sdk::GroupPlugin&>(harness_->plugin()).Group(attempt);
    return group ? group->short_of : "no group";
  }

  std::unique_ptr<PluginHarness> harness_;
  std::unique_ptr<ObjectStore> store_;
};

TEST_F(MinResourcesTest, AllNodesTogetherCountInWhateverPieces) {
  EXPECT_EQ(ShortOf(R"({"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "4"})"), "");
  EXPECT_EQ(ShortOf(R"({"cpu": "8001m", "nvidia.com/gpu": "5"})"),
            "8000m of 8001m cpu are free, 4 of 5 nvidia.com/gpu are free (minResources)");
  EXPECT_EQ(ShortOf(R"({"memory": "17Gi"})"), "16384Mi of 17408Mi memory are free (minResources)");
  EXPECT_EQ(ShortOf(R"({"example.com/fpga": 1})"),
            "0 of 1 example.com/fpga are free (minResources)");
}

TEST_F(MinResourcesTest, ThereAreToBePlacesForAllPods) {
  EXPECT_EQ(ShortOf("{}", 8), "");
  EXPECT_EQ(ShortOf("{}", 9), "8 of 9 places for pods are free (minResources)");
}

TEST_F(MinResourcesTest, WhatOthersHaveIsNotFreeAndWhatMembersHaveIs) {
  v1beta1::Pod other = PodBuilder("other").Requests({{"nvidia.com/gpu", "1"}});
  other.set_node_name("n1");
  harness_->AddPod(other);
  EXPECT_EQ(ShortOf(R"({"nvidia.com/gpu": "4"})", 3),
            "3 of 4 nvidia.com/gpu are free (minResources)");
  EXPECT_EQ(ShortOf(R"({"nvidia.com/gpu": "3"})", 3), "");
  harness_->Place("default/m0", v1beta1::PLACEMENT_STATE_WAITING, "n2");
  EXPECT_EQ(ShortOf(R"({"nvidia.com/gpu": "3"})", 3), "");
}

TEST_F(MinResourcesTest, ANodeThatHasGivenTooMuchTakesNothingFromOthers) {
  v1beta1::Pod huge = PodBuilder("huge").Requests({{"nvidia.com/gpu", "7"}});
  huge.set_node_name("n1");
  harness_->AddPod(huge);
  EXPECT_EQ(ShortOf(R"({"nvidia.com/gpu": "2"})"), "");
}

}  // namespace
}  // namespace outboard::atomic_replica_coordinator
