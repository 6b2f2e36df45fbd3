#include "plugin_host/sdk/pod_effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(PodEffects, APatchHasAllOfItsParts) {
  const v1beta1::Effect effect =
      PatchPod("k", {{{"a.example.com/x", "1"}}, {{"l", "2"}}, {"b"}, {"m"}});
  EXPECT_EQ(effect.key(), "k");
  EXPECT_THAT(effect.patch_pod().set_annotations(),
              UnorderedElementsAre(Pair("a.example.com/x", "1")));
  EXPECT_THAT(effect.patch_pod().set_labels(), UnorderedElementsAre(Pair("l", "2")));
  EXPECT_THAT(effect.patch_pod().remove_annotations(), ElementsAre("b"));
  EXPECT_THAT(effect.patch_pod().remove_labels(), ElementsAre("m"));
}

TEST(PodEffects, AConditionIsTrueUnlessSaidOtherwise) {
  PodCondition condition;
  condition.type = "example.com/Held";
  condition.reason = "Held";
  EXPECT_EQ(SetPodCondition("k", condition).set_pod_condition().status(),
            v1beta1::CONDITION_STATUS_TRUE);
  condition.status = v1beta1::CONDITION_STATUS_UNKNOWN;
  const v1beta1::Effect effect = SetPodCondition("k", condition);
  EXPECT_EQ(effect.set_pod_condition().status(), v1beta1::CONDITION_STATUS_UNKNOWN);
  EXPECT_EQ(effect.set_pod_condition().type(), "example.com/Held");
  EXPECT_EQ(effect.set_pod_condition().reason(), "Held");
}

TEST(PodEffects, ANoteIsCutBetweenCharacters) {
  const Event event{"Held", "Holding", std::string(1023, 'x') + "\u00e9", true};
  const v1beta1::Effect effect = RecordPodEvent("k", event);
  EXPECT_EQ(effect.record_event().note(), std::string(1023, 'x'));
  EXPECT_EQ(effect.record_event().type(), v1beta1::RecordEvent::TYPE_WARNING);
  EXPECT_EQ(effect.record_event().resource(), "");
}

TEST(PodEffects, AnEventNamesItsObject) {
  v1beta1::GenericObject object;
  object.set_resource("configmaps.v1");
  object.set_namespace_("ns");
  object.set_name("c");
  object.set_uid("u");
  const v1beta1::RecordEvent event =
      RecordObjectEvent("k", object, "ConfigMap", {"Held", "Holding", "n"}).record_event();
  EXPECT_EQ(event.resource(), "configmaps.v1");
  EXPECT_EQ(event.namespace_(), "ns");
  EXPECT_EQ(event.name(), "c");
  EXPECT_EQ(event.uid(), "u");
  EXPECT_EQ(event.kind(), "ConfigMap");
  EXPECT_EQ(event.type(), v1beta1::RecordEvent::TYPE_NORMAL);
}

}  // namespace
}  // namespace outboard::sdk
