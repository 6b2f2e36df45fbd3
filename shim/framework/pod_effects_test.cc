#include "shim/framework/pod_effects.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace outboard::framework {
namespace {

using ::testing::HasSubstr;

v1beta1::Effect Parse(const std::string& text) {
  v1beta1::Effect effect;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString("key: 'k' plugin: 'P' " + text, &effect))
      << text;
  return effect;
}

std::string Say(const v1beta1::Effect& effect, const std::vector<std::string>& allowed = {}) {
  return std::string(CheckPodEffect(effect, allowed).message());
}
std::string Say(const std::string& text, const std::vector<std::string>& allowed = {}) {
  return Say(Parse(text), allowed);
}

TEST(CheckPodEffect, AllowsWhatTheContractDescribes) {
  EXPECT_EQ(Say("patch_pod { set_annotations { key: 'example.com/a' value: 'any text' } "
                "set_labels { key: 'l' value: 'v' } remove_annotations: 'b' "
                "remove_labels: 'example.com/m' }"),
            "");
  EXPECT_EQ(Say("set_pod_condition { type: 'example.com/Held' status: CONDITION_STATUS_FALSE "
                "reason: 'NotYet' message: 'x' }"),
            "");
  EXPECT_EQ(Say("record_event { type: TYPE_WARNING reason: 'Held' action: 'Holding' note: 'n' }"),
            "");
  EXPECT_EQ(Say("record_event { resource: 'configmaps.v1' namespace: 'ns' name: 'c' uid: 'u' "
                "kind: 'ConfigMap' type: TYPE_NORMAL reason: 'Held' action: 'Holding' note: 'n' }"),
            "");
  EXPECT_EQ(Say("select_node { name: 'c' }"), "") << "checked elsewhere";
}

TEST(CheckPodEffect, ReservedKeysNeedTheAdministrator) {
  for (const std::string key :
       {"kubernetes.io/x", "k8s.io/x", "pod-security.kubernetes.io/enforce",
        "cluster-autoscaler.kubernetes.io/safe-to-evict", "scheduling.k8s.io/group"}) {
    for (const char* part : {"set_annotations { key: '", "set_labels { key: '"}) {
      const std::string patch = absl::StrCat("patch_pod { ", part, key, "' value: 'v' } }");
      EXPECT_THAT(Say(patch), HasSubstr(absl::StrCat("key ", key, " belongs to Kubernetes")));
      EXPECT_EQ(Say(patch, {key}), "");
      EXPECT_NE(Say(patch, {"kubernetes.io", "k8s.io/y"}), "");
    }
    for (const char* part : {"remove_annotations", "remove_labels"}) {
      const std::string patch = absl::StrCat("patch_pod { ", part, ": '", key, "' }");
      EXPECT_THAT(Say(patch), HasSubstr("belongs to Kubernetes"));
    }
  }
  EXPECT_EQ(Say("patch_pod { set_labels { key: 'kueue.x-k8s.io/queue' value: 'v' } }"), "");
  EXPECT_EQ(Say("patch_pod { set_labels { key: 'notkubernetes.io/queue' value: 'v' } }"), "");
}

TEST(CheckPodEffect, RefusesPatchesOfThePodThatTheApiServerWouldRefuse) {
  EXPECT_THAT(Say("patch_pod {}"), HasSubstr("without a change"));
  EXPECT_NE(Say("patch_pod { set_annotations { key: 'a/b/c' value: 'v' } }"), "");
  EXPECT_NE(Say("patch_pod { set_annotations { key: '' value: 'v' } }"), "");
  EXPECT_NE(Say("patch_pod { set_labels { key: 'l' value: 'a b' } }"), "");
  EXPECT_EQ(Say(absl::StrCat("patch_pod { set_labels { key: 'l' value: '", std::string(63, 'x'),
                             "' } }")),
            "");
  EXPECT_NE(Say(absl::StrCat("patch_pod { set_labels { key: 'l' value: '", std::string(64, 'x'),
                             "' } }")),
            "");
  EXPECT_THAT(Say("patch_pod { set_labels { key: 'l' value: 'v' } remove_labels: 'l' }"),
              HasSubstr("named twice"));
  EXPECT_THAT(Say("patch_pod { remove_annotations: 'l' remove_annotations: 'l' }"),
              HasSubstr("named twice"));
  EXPECT_EQ(Say("patch_pod { set_labels { key: 'l' value: 'v' } remove_annotations: 'l' }"), "");
}

TEST(CheckPodEffect, PrefixesOfAnnotationsAreReadInLowerCase) {
  EXPECT_EQ(Say("patch_pod { set_annotations { key: 'Example.com/a' value: 'v' } }"), "");
  EXPECT_NE(Say("patch_pod { set_labels { key: 'Example.com/a' value: 'v' } }"), "");
  EXPECT_THAT(Say("patch_pod { remove_annotations: 'Kubernetes.io/a' }"),
              HasSubstr("belongs to Kubernetes"));
}

TEST(CheckPodEffect, BoundsThePatch) {
  v1beta1::Effect effect = Parse("patch_pod {}");
  auto& annotations = *effect.mutable_patch_pod()->mutable_set_annotations();
  annotations["a"] = std::string((256 << 10) - 1, 'x');
  EXPECT_EQ(Say(effect), "");
  annotations["a"] += 'x';
  EXPECT_THAT(Say(effect), HasSubstr("annotations of 262145 bytes"));
  annotations.clear();
  for (int i = 0; i < 256; ++i) annotations[absl::StrCat("a", i)] = "";
  EXPECT_EQ(Say(effect), "");
  effect.mutable_patch_pod()->add_remove_labels("l");
  EXPECT_THAT(Say(effect), HasSubstr("257 keys"));
}

TEST(CheckPodEffect, ConditionsOfKubernetesAreNotForPlugins) {
  const auto say = [](const std::string& type) {
    return Say(absl::StrCat("set_pod_condition { type: '", type,
                            "' status: CONDITION_STATUS_TRUE reason: 'R' }"));
  };
  for (const char* type :
       {"PodScheduled", "Ready", "Initialized", "ContainersReady", "DisruptionTarget",
        "PodReadyToStartContainers", "PodResizePending", "kubernetes.io/Ready", "a.k8s.io/Ready"}) {
    EXPECT_THAT(say(type), HasSubstr("belongs to Kubernetes")) << type;
  }
  EXPECT_NE(say(""), "");
  EXPECT_NE(say("example.com/"), "");
  EXPECT_NE(Say("set_pod_condition { type: 'e.com/A' reason: 'R' }"), "");
  EXPECT_NE(Say("set_pod_condition { type: 'e.com/A' status: 7 reason: 'R' }"), "");
  EXPECT_NE(
      Say("set_pod_condition { type: 'e.com/A' status: CONDITION_STATUS_TRUE reason: 'no words' }"),
      "");
  EXPECT_NE(Say(absl::StrCat(
                "set_pod_condition { type: 'e.com/A' status: CONDITION_STATUS_TRUE reason: 'R' "
                "message: '",
                std::string(1025, 'x'), "' }")),
            "");
}

TEST(CheckPodEffect, BoundsEvents) {
  const auto say = [](const std::string& fields) {
    return Say(absl::StrCat("record_event { ", fields, " }"));
  };
  const std::string good = "type: TYPE_NORMAL reason: 'R' action: 'A' note: 'n' ";
  EXPECT_EQ(say(good), "");
  EXPECT_THAT(say("reason: 'R' action: 'A' note: 'n'"), HasSubstr("without a type"));
  EXPECT_NE(say("type: TYPE_NORMAL reason: 'r' action: 'A' note: 'n'"), "");
  EXPECT_NE(say("type: TYPE_NORMAL reason: 'R' note: 'n'"), "");
  EXPECT_NE(say("type: TYPE_NORMAL reason: 'R' action: 'A'"), "");
  EXPECT_EQ(say(absl::StrCat("type: TYPE_NORMAL reason: '", std::string(128, 'R'),
                             "' action: 'A' note: '", std::string(1024, 'n'), "'")),
            "");
  EXPECT_NE(say(absl::StrCat("type: TYPE_NORMAL reason: '", std::string(129, 'R'),
                             "' action: 'A' note: 'n'")),
            "");
  EXPECT_NE(say(absl::StrCat("type: TYPE_NORMAL reason: 'R' action: 'A' note: '",
                             std::string(1025, 'n'), "'")),
            "");
  EXPECT_THAT(say(good + "name: 'c'"), HasSubstr("without its resource"));
  EXPECT_THAT(say(good + "resource: 'configmaps.v1' name: 'c' kind: 'ConfigMap'"),
              HasSubstr("without its uid"));
  EXPECT_NE(say(good + "resource: 'configmaps.v1' name: 'c' uid: 'u' kind: 'config map'"), "");
}

}  // namespace
}  // namespace outboard::framework
