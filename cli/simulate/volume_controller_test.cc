#include "cli/simulate/volume_controller.h"

#include <gtest/gtest.h>

#include <memory>

namespace outboard::simulate {
namespace {

class VolumeControllerTest : public ::testing::Test {
 protected:
  VolumeControllerTest() : controller_(Objects()) {}

  static std::vector<kube::ClusterObjectPtr> Objects() {
    auto volume = std::make_shared<kube::ClusterObject>();
    volume->object.mutable_persistent_volume()->set_name("pv");
    volume->resource_version = "7";
    auto claim = std::make_shared<kube::ClusterObject>();
    claim->object.mutable_persistent_volume_claim()->set_namespace_("ns");
    claim->object.mutable_persistent_volume_claim()->set_name("data");
    claim->object.mutable_persistent_volume_claim()->set_uid("c");
    claim->object.mutable_persistent_volume_claim()->set_request_bytes(5);
    claim->object.mutable_persistent_volume_claim()->set_storage_class_name("fast");
    auto storage_class = std::make_shared<kube::ClusterObject>();
    storage_class->object.mutable_storage_class()->set_name("fast");
    storage_class->object.mutable_storage_class()->set_provisioner("csi.example.com");
    return {volume, claim, storage_class};
  }

  VolumeController controller_;
  std::vector<kube::ClusterObjectPtr> changed_;
};

TEST_F(VolumeControllerTest, BindsAVolumeOnce) {
  EXPECT_FALSE(
      controller_.objects()[1]->object.persistent_volume_claim().resource_version().empty())
      << "effects name the version";
  v1beta1::Effect effect;
  v1beta1::BindVolume* bind = effect.mutable_bind_volume();
  bind->set_name("pv");
  bind->set_resource_version("7");
  bind->mutable_claim()->set_namespace_("ns");
  bind->mutable_claim()->set_name("data");
  bind->mutable_claim()->set_uid("c");
  auto version = controller_.Write(effect, &changed_);
  ASSERT_TRUE(version.ok()) << version.status();
  ASSERT_EQ(changed_.size(), 1u) << "the controller has not looked yet";
  EXPECT_EQ(changed_[0]->object.persistent_volume().claim_ref().uid(), "c");
  EXPECT_EQ(changed_[0]->object.persistent_volume().resource_version(), *version);
  const auto followed = controller_.Reconcile();
  ASSERT_EQ(followed.size(), 1u);
  EXPECT_EQ(followed[0]->object.persistent_volume_claim().volume_name(), "pv");
  EXPECT_TRUE(followed[0]->object.persistent_volume_claim().bind_completed());
  EXPECT_TRUE(controller_.Reconcile().empty());
  EXPECT_EQ(controller_.Write(effect, &changed_).status().code(), absl::StatusCode::kAborted);
  bind->set_name("gone");
  EXPECT_EQ(controller_.Write(effect, &changed_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(VolumeControllerTest, MakesAVolume) {
  v1beta1::Effect effect;
  v1beta1::SelectNode* select = effect.mutable_select_node();
  select->set_namespace_("ns");
  select->set_name("data");
  select->set_node_name("n1");
  EXPECT_EQ(controller_.Write(effect, &changed_).status().code(), absl::StatusCode::kAborted);
  select->set_resource_version(controller_.objects()[1]->resource_version);
  auto version = controller_.Write(effect, &changed_);
  ASSERT_TRUE(version.ok()) << version.status();
  ASSERT_EQ(changed_.size(), 1u);
  EXPECT_EQ(changed_[0]->object.persistent_volume_claim().selected_node(), "n1");
  EXPECT_EQ(changed_[0]->object.persistent_volume_claim().resource_version(), *version);
  const auto followed = controller_.Reconcile();
  ASSERT_EQ(followed.size(), 2u);
  const v1beta1::PersistentVolume& volume = followed[0]->object.persistent_volume();
  EXPECT_EQ(volume.capacity_bytes(), 5);
  EXPECT_EQ(volume.claim_ref().name(), "data");
  EXPECT_EQ(volume.csi().driver(), "csi.example.com");
  const v1beta1::PersistentVolumeClaim& claim = followed[1]->object.persistent_volume_claim();
  EXPECT_EQ(claim.volume_name(), volume.name());
  EXPECT_EQ(claim.selected_node(), "n1");
}

}  // namespace
}  // namespace outboard::simulate
