#include "shim/framework/volume_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "shim/framework/answer_check.h"
#include "shim/framework/testing/volumes.h"

namespace outboard::framework {
namespace {

using ::testing::HasSubstr;
using v1beta1::PersistentVolume;
using v1beta1::PersistentVolumeClaim;
using v1beta1::StorageClass;

// Pod p of namespace ns claims "data" and gets a node of zone "a". Volume pv fits.
class VolumeEffectsTest : public ::testing::Test {
 protected:
  VolumeEffectsTest() {
    node_.set_name("n1");
    (*node_.mutable_labels())["zone"] = "a";
    pod_.set_uid("uid-p");
    pod_.set_namespace_("ns");
    pod_.set_name("p");
    v1beta1::Volume* volume = pod_.add_volumes();
    volume->set_name("v");
    volume->set_source("persistentVolumeClaim");
    volume->set_claim_name("data");
    volume = pod_.add_volumes();
    volume->set_name("tmp");
    volume->set_source("ephemeral");
    v1beta1::Effect effect;
    effect.set_key("bind");
    effect.set_plugin("VolumeBinding");
    v1beta1::BindVolume* const bind = effect.mutable_bind_volume();
    bind->set_name("pv");
    bind->set_uid("uid-pv");
    bind->set_resource_version("7");
    bind->mutable_claim()->set_namespace_("ns");
    bind->mutable_claim()->set_name("data");
    bind->mutable_claim()->set_uid("uid-data");
    bind->set_claim_resource_version("5");
    bind->set_bound_by_controller(true);
    bind_ = *bind;
    v1beta1::SelectNode* const select = effect.mutable_select_node();
    select->set_namespace_("ns");
    select->set_name("data");
    select->set_uid("uid-data");
    select->set_resource_version("5");
    select->set_node_name("n1");
    select_ = *select;
  }
  PersistentVolume& volume() { return *volume_->object.mutable_persistent_volume(); }
  PersistentVolumeClaim& claim() { return *claim_->object.mutable_persistent_volume_claim(); }
  StorageClass& storage_class() { return *class_->object.mutable_storage_class(); }

  std::string Fault(const google::protobuf::RepeatedPtrField<v1beta1::Effect>& effects) const {
    cache::ClusterState cluster;
    for (const auto& object : {volume_, claim_, class_}) {
      if (object != nullptr) cluster.UpsertObject(std::make_shared<kube::ClusterObject>(*object));
    }
    EXPECT_EQ(CheckEffects(effects, "Reserve", pod_, node_.name()).message(), "")
        << "the claim is the pod's";
    return std::string(CheckVolumeEffects(effects, pod_, node_, cluster).message());
  }
  std::string BindFault() const {
    google::protobuf::RepeatedPtrField<v1beta1::Effect> effects;
    effects.Add()->set_key("bind");
    effects[0].set_plugin("VolumeBinding");
    *effects[0].mutable_bind_volume() = bind_;
    return Fault(effects);
  }
  std::string SelectFault() const {
    google::protobuf::RepeatedPtrField<v1beta1::Effect> effects;
    effects.Add()->set_key("select");
    effects[0].set_plugin("VolumeBinding");
    *effects[0].mutable_select_node() = select_;
    return Fault(effects);
  }
  // The volume is reserved; `uid`: empty if only the claim's name is.
  void Reserve(const std::string& name_space, const std::string& name, const std::string& uid) {
    volume().mutable_claim_ref()->set_namespace_(name_space);
    volume().mutable_claim_ref()->set_name(name);
    volume().mutable_claim_ref()->set_uid(uid);
    bind_.set_bound_by_controller(false);
  }
  static void Require(const std::string& zone, v1beta1::NodeSelectorTerm* term) {
    v1beta1::SelectorRequirement* const requirement = term->add_match_expressions();
    requirement->set_key("zone");
    requirement->set_operator_(v1beta1::SelectorRequirement::OPERATOR_IN);
    requirement->add_values(zone);
  }

  v1beta1::Pod pod_;
  v1beta1::Node node_;
  std::shared_ptr<kube::ClusterObject> volume_ = testing::FreeVolume("pv", "uid-pv", "7");
  std::shared_ptr<kube::ClusterObject> claim_ =
      testing::WaitingClaim("ns", "data", "uid-data", "5");
  std::shared_ptr<kube::ClusterObject> class_ = testing::DelayedClass();
  v1beta1::BindVolume bind_;
  v1beta1::SelectNode select_;
};

TEST_F(VolumeEffectsTest, AVolumeThatFitsMayBeBound) {
  EXPECT_EQ(BindFault(), "");
  Require("b", volume().mutable_node_affinity()->add_node_selector_terms());
  Require("a", volume().mutable_node_affinity()->add_node_selector_terms());
  volume().add_access_modes("ReadOnlyMany");
  volume().set_volume_mode("Filesystem");
  volume().set_capacity_bytes(11);
  claim().clear_volume_mode();
  (*volume().mutable_labels())["tier"] = "fast";
  (*claim().mutable_selector()->mutable_match_labels())["tier"] = "fast";
  EXPECT_EQ(BindFault(), "");
}

TEST_F(VolumeEffectsTest, AVolumeReservedForTheClaimMayBeBound) {
  // As in Kubernetes, the person who reserved it is responsible for access modes, labels and phase.
  volume().clear_access_modes();
  volume().set_phase("Pending");
  for (const char* uid : {"", "uid-data"}) {
    Reserve("ns", "data", uid);
    EXPECT_EQ(BindFault(), "") << uid;
  }
}

TEST_F(VolumeEffectsTest, AnothersVolumeIsNotBound) {
  volume().set_phase("Released");
  Reserve("tenant", "secrets", "uid-secrets");
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim tenant/secrets uid-secrets"));
  volume().set_phase("Bound");
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim tenant/secrets uid-secrets"));
  volume().set_phase("Available");
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim tenant/secrets uid-secrets"));
  Reserve("ns", "data", "uid-of-a-predecessor");
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim ns/data uid-of-a-predecessor"));
  Reserve("other", "data", "");
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim other/data"));
  // A lie about who reserved it does not help.
  bind_.set_bound_by_controller(true);
  EXPECT_THAT(BindFault(), HasSubstr("is reserved for claim other/data"));
}

TEST_F(VolumeEffectsTest, AVolumeThatDoesNotFitIsNotBound) {
  const auto fault = [&](const std::function<void(PersistentVolume*)>& change) {
    volume_ = testing::FreeVolume("pv", "uid-pv", "7");
    change(&volume());
    return BindFault();
  };
  EXPECT_THAT(fault([](auto* pv) { pv->set_phase("Released"); }),
              HasSubstr("phase is \"Released\""));
  EXPECT_THAT(fault([](auto* pv) { pv->set_phase("Bound"); }), HasSubstr("phase is \"Bound\""));
  EXPECT_THAT(fault([](auto* pv) { pv->set_phase("Failed"); }), HasSubstr("phase is \"Failed\""));
  EXPECT_THAT(fault([](auto* pv) { pv->clear_phase(); }), HasSubstr("phase is \"\""));
  EXPECT_THAT(fault([](auto* pv) { pv->set_deleting(true); }), HasSubstr("being deleted"));
  EXPECT_THAT(fault([](auto* pv) { pv->set_storage_class_name("gold"); }),
              HasSubstr("class is \"gold\""));
  EXPECT_THAT(fault([](auto* pv) { pv->set_capacity_bytes(9); }), HasSubstr("9 bytes of 10"));
  EXPECT_THAT(fault([](auto* pv) { pv->set_access_modes(0, "ReadOnlyMany"); }),
              HasSubstr("no access mode ReadWriteOnce"));
  EXPECT_THAT(fault([](auto* pv) { pv->set_volume_mode("Block"); }), HasSubstr("volume mode"));
  EXPECT_THAT(fault([](auto* pv) { pv->set_volume_attributes_class_name("gold"); }),
              HasSubstr("attributes class"));
  EXPECT_THAT(
      fault([](auto* pv) { Require("b", pv->mutable_node_affinity()->add_node_selector_terms()); }),
      HasSubstr("node affinity excludes node n1"));
  (*claim().mutable_selector()->mutable_match_labels())["tier"] = "fast";
  EXPECT_THAT(fault([](auto*) {}), HasSubstr("labels"));
}

TEST_F(VolumeEffectsTest, AReservedVolumeMustFitToo) {
  const auto fault = [&](const std::function<void(PersistentVolume*)>& change) {
    volume_ = testing::FreeVolume("pv", "uid-pv", "7");
    Reserve("ns", "data", "");
    change(&volume());
    return BindFault();
  };
  EXPECT_EQ(fault([](auto*) {}), "");
  EXPECT_NE(fault([](auto* pv) { pv->set_deleting(true); }), "");
  EXPECT_NE(fault([](auto* pv) { pv->set_storage_class_name("gold"); }), "");
  EXPECT_NE(fault([](auto* pv) { pv->set_capacity_bytes(9); }), "");
  EXPECT_NE(fault([](auto* pv) { pv->set_volume_mode("Block"); }), "");
  EXPECT_NE(
      fault([](auto* pv) { Require("b", pv->mutable_node_affinity()->add_node_selector_terms()); }),
      "");
}

TEST_F(VolumeEffectsTest, OnlyTheVersionsThatTheShimKnowsAreWritten) {
  const v1beta1::BindVolume good = bind_;
  // A version that the shim has not seen may be another tenant's.
  bind_.set_resource_version("8");
  EXPECT_THAT(BindFault(), HasSubstr("has another version"));
  bind_ = good;
  bind_.set_uid("another");
  EXPECT_THAT(BindFault(), HasSubstr("has another version"));
  bind_ = good;
  bind_.set_name("unknown");
  EXPECT_THAT(BindFault(), HasSubstr("it is unknown"));
  bind_ = good;
  bind_.set_claim_resource_version("4");
  EXPECT_THAT(BindFault(), HasSubstr("the claim is unknown or has another version"));
  bind_ = good;
  bind_.mutable_claim()->set_uid("another");
  EXPECT_THAT(BindFault(), HasSubstr("the claim is unknown or has another version"));
  select_.set_resource_version("6");
  EXPECT_THAT(SelectFault(), HasSubstr("has another version"));
  select_.set_resource_version("5");
  select_.set_uid("another");
  EXPECT_THAT(SelectFault(), HasSubstr("has another version"));
}

TEST_F(VolumeEffectsTest, WhoReservedAVolumeIsNotMisreported) {
  bind_.set_bound_by_controller(false);
  EXPECT_THAT(BindFault(), HasSubstr("wrong about who reserved it"));
  Reserve("ns", "data", "");
  bind_.set_bound_by_controller(true);
  EXPECT_THAT(BindFault(), HasSubstr("wrong about who reserved it"));
}

TEST_F(VolumeEffectsTest, ANodeMayBeSelectedForAClaimThatWaits) {
  EXPECT_EQ(SelectFault(), "");
  claim().set_selected_node("n1");
  Require("a", storage_class().add_allowed_topologies());
  EXPECT_EQ(SelectFault(), "");
}

TEST_F(VolumeEffectsTest, NoNodeIsSelectedWhereNoVolumeIsMade) {
  claim().set_selected_node("n2");
  EXPECT_THAT(SelectFault(), HasSubstr("made for node n2"));
  claim().clear_selected_node();
  storage_class().set_provisioner("kubernetes.io/no-provisioner");
  EXPECT_THAT(SelectFault(), HasSubstr("no provisioner"));
  storage_class().clear_provisioner();
  EXPECT_THAT(SelectFault(), HasSubstr("no provisioner"));
  storage_class().set_provisioner("csi.example.com");
  Require("b", storage_class().add_allowed_topologies());
  EXPECT_THAT(SelectFault(), HasSubstr("makes no volumes for node n1"));
}

TEST_F(VolumeEffectsTest, AClaimThatDoesNotWaitForAPodIsLeftAlone) {
  const auto faults = [&] { return BindFault() + " " + SelectFault(); };
  claim().set_deleting(true);
  EXPECT_THAT(BindFault(), HasSubstr("the claim is being deleted"));
  EXPECT_THAT(SelectFault(), HasSubstr("the claim is being deleted"));
  claim().clear_deleting();
  claim().set_volume_name("other");
  EXPECT_THAT(BindFault(), HasSubstr("the claim has a volume"));
  EXPECT_THAT(SelectFault(), HasSubstr("the claim has a volume"));
  claim().clear_volume_name();
  storage_class().set_volume_binding_mode("Immediate");
  EXPECT_THAT(BindFault(), HasSubstr("does not wait for a pod"));
  EXPECT_THAT(SelectFault(), HasSubstr("does not wait for a pod"));
  class_ = nullptr;
  EXPECT_THAT(faults(), HasSubstr("does not wait for a pod"));
  claim_ = nullptr;
  EXPECT_THAT(BindFault(), HasSubstr("the claim is unknown"));
  EXPECT_THAT(SelectFault(), HasSubstr("it is unknown"));
}

TEST_F(VolumeEffectsTest, AnEphemeralVolumesClaimMustBeThePods) {
  claim_ = testing::WaitingClaim("ns", "p-tmp", "uid-data", "5");
  bind_.mutable_claim()->set_name("p-tmp");
  select_.set_name("p-tmp");
  EXPECT_THAT(BindFault(), HasSubstr("was not created for the pod"));
  EXPECT_THAT(SelectFault(), HasSubstr("was not created for the pod"));
  claim().mutable_controller()->set_uid("uid-of-another-pod");
  EXPECT_THAT(SelectFault(), HasSubstr("was not created for the pod"));
  claim().mutable_controller()->set_uid("uid-p");
  EXPECT_EQ(BindFault(), "");
  EXPECT_EQ(SelectFault(), "");
}

TEST_F(VolumeEffectsTest, AVolumeIsBoundOnce) {
  pod_.add_volumes()->set_source("persistentVolumeClaim");
  pod_.mutable_volumes(2)->set_claim_name("more");
  google::protobuf::RepeatedPtrField<v1beta1::Effect> effects;
  for (const char* name : {"data", "more"}) {
    v1beta1::Effect& effect = *effects.Add();
    effect.set_key(name);
    effect.set_plugin("VolumeBinding");
    *effect.mutable_bind_volume() = bind_;
    effect.mutable_bind_volume()->mutable_claim()->set_name(name);
  }
  EXPECT_THAT(Fault(effects), HasSubstr("another effect binds it"));
}

}  // namespace
}  // namespace outboard::framework
