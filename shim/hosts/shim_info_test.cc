#include "shim/hosts/shim_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "outboard/v1beta1/cluster_state.pb.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/hosts/inline_content.h"
#include "shim/hosts/needed_fields.h"

namespace outboard::hosts::shim_info_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(ShimInfo, NamesWhatTheShimDoes) {
  const v1beta1::ShimInfo& shim = ThisShim();
  EXPECT_EQ(shim.extension_points_size(), 15) << "all of them";
  EXPECT_THAT(shim.extension_points(), Contains(v1beta1::EXTENSION_POINT_PRE_BIND));
  EXPECT_THAT(shim.extension_points(), Contains(v1beta1::EXTENSION_POINT_BIND));
  EXPECT_THAT(shim.extension_points(), Not(Contains(v1beta1::EXTENSION_POINT_UNSPECIFIED)));
  EXPECT_THAT(shim.effects(),
              IsSupersetOf({"bind_volume", "put_object", "patch_object", "delete_object",
                            "patch_pod", "set_pod_condition", "record_event"}));
  EXPECT_THAT(shim.pushes(), IsSupersetOf({"ack", "wait_decision", "queue_hints", "effect"}));
  EXPECT_THAT(shim.pushes(), Not(Contains("push_id")));
  EXPECT_EQ(shim.event_actions_size(), 13);
  EXPECT_THAT(shim.event_actions(), Not(Contains(v1beta1::ClusterEvent::ACTION_UNSPECIFIED)));
}

// Every form that the shim names has an effect on what a host gets.
TEST(ShimInfo, NamesTheFieldsThatItSends) {
  for (const std::string& form : ThisShim().needed_fields()) {
    v1beta1::GetHostInfoResponse info;
    info.add_plugins()->add_needed_fields(form);
    const cache::ChangeEncoder::Fields fields = NeededFields(info);
    const InlineParts parts = PartsOf(info, fields);
    const bool is_pod_field = fields.command || fields.args || !fields.variables.empty() ||
                              !fields.pod_annotations.empty() || !fields.node_annotations.empty() ||
                              fields.resource_version || fields.service_account_name ||
                              fields.priority_class_name || fields.runtime_class_name ||
                              fields.phase || !fields.pod_conditions.empty() || fields.capacity ||
                              fields.node_conditions || fields.addresses || form == kQueueAttempts;
    // A plugin that names no part of nodes gets these four.
    const bool is_default = parts.labels && parts.taints && parts.allocatable && parts.requested;
    EXPECT_NE(is_pod_field, !is_default) << form;
  }
  EXPECT_THAT(
      ThisShim().needed_fields(),
      ElementsAre("Pod.metadata.annotations['KEY']", "Node.metadata.annotations['KEY']",
                  "Pod.spec.containers[*].command", "Pod.spec.containers[*].args",
                  "Pod.spec.containers[*].env['NAME']", "Pod.metadata.resourceVersion",
                  "Pod.spec.serviceAccountName", "Pod.spec.priorityClassName",
                  "Pod.spec.runtimeClassName", "Pod.status.phase", "Pod.status.conditions['TYPE']",
                  "Node.status.capacity", "Node.status.conditions", "Node.status.addresses",
                  "QueuedPodInfo.attempts", "Node.metadata.labels", "Node.metadata.labels['KEY']",
                  "Node.spec.taints", "Node.status.allocatable", "Node.status.allocatable['NAME']",
                  "Node.status.images", "Node.status.declaredFeatures", "Node.requested",
                  "Node.requested['NAME']", "Node.pods", "Node.metadata.uid",
                  "Node.metadata.creationTimestamp"));
}

TEST(NeededFields, AnnotationsCommandsVariablesAndResources) {
  v1beta1::GetHostInfoResponse info;
  v1beta1::PluginInfo* plugin = info.add_plugins();
  plugin->add_needed_fields("Pod.metadata.annotations['a']");
  plugin->add_needed_fields("Pod.spec.containers[*].args");
  plugin->add_needed_fields("Pod.spec.containers[*].env['WORLD_SIZE']");
  plugin->add_needed_fields("Pod.status.conditions['Ready']");
  plugin->add_optional_fields("Pod.spec.serviceAccountName");
  plugin->add_optional_fields("Pod.spec.unknown['b']");
  plugin->add_needed_fields("Node.metadata.annotations['c'");
  plugin->add_declared_resources()->set_resource("widgets.v1.example.com");
  const cache::ChangeEncoder::Fields fields = NeededFields(info);
  EXPECT_THAT(fields.pod_annotations, ElementsAre("a"));
  EXPECT_TRUE(fields.node_annotations.empty());
  EXPECT_FALSE(fields.command);
  EXPECT_TRUE(fields.args);
  EXPECT_THAT(fields.variables, ElementsAre("WORLD_SIZE"));
  EXPECT_THAT(fields.pod_conditions, ElementsAre("Ready"));
  EXPECT_TRUE(fields.service_account_name);
  EXPECT_FALSE(fields.runtime_class_name);
  EXPECT_THAT(fields.custom_resources, ElementsAre("widgets.v1.example.com"));
}

}  // namespace
}  // namespace outboard::hosts::shim_info_test
