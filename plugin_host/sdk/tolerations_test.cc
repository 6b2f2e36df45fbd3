#include "plugin_host/sdk/tolerations.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using v1alpha1::Toleration;

v1alpha1::Taint MakeTaint(const std::string& key, const std::string& value,
                          v1alpha1::TaintEffect effect) {
  v1alpha1::Taint taint;
  taint.set_key(key);
  taint.set_value(value);
  taint.set_effect(effect);
  return taint;
}

Toleration MakeToleration(const std::string& key, Toleration::Operator op, const std::string& value,
                          v1alpha1::TaintEffect effect) {
  Toleration toleration;
  toleration.set_key(key);
  toleration.set_operator_(op);
  toleration.set_value(value);
  toleration.set_effect(effect);
  return toleration;
}

TEST(TolerationsTest, FollowsKubernetesRules) {
  const auto taint = MakeTaint("k", "v", v1alpha1::NO_SCHEDULE);
  const auto any = v1alpha1::TAINT_EFFECT_UNSPECIFIED;
  EXPECT_TRUE(Tolerates(MakeToleration("k", Toleration::EQUAL, "v", any), taint));
  EXPECT_TRUE(Tolerates(MakeToleration("k", Toleration::OPERATOR_UNSPECIFIED, "v", any), taint));
  EXPECT_FALSE(Tolerates(MakeToleration("k", Toleration::EQUAL, "w", any), taint));
  EXPECT_FALSE(Tolerates(MakeToleration("j", Toleration::EXISTS, "", any), taint));
  EXPECT_TRUE(Tolerates(MakeToleration("", Toleration::EXISTS, "", any), taint));
  EXPECT_FALSE(Tolerates(MakeToleration("k", Toleration::EXISTS, "", v1alpha1::NO_EXECUTE), taint));
  EXPECT_FALSE(
      Tolerates(MakeToleration("k", static_cast<Toleration::Operator>(9), "v", any), taint));
}

TEST(TolerationsTest, FindsTheFirstTaintThatKeepsThePodAway) {
  const std::vector<v1alpha1::Taint> taints = {MakeTaint("soft", "", v1alpha1::PREFER_NO_SCHEDULE),
                                               MakeTaint("a", "", v1alpha1::NO_SCHEDULE),
                                               MakeTaint("b", "", v1alpha1::NO_EXECUTE)};
  Tolerations tolerations;
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations)->key(), "a");
  *tolerations.Add() = MakeToleration("a", Toleration::EXISTS, "", v1alpha1::NO_SCHEDULE);
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations)->key(), "b");
  *tolerations.Add() = MakeToleration("b", Toleration::EXISTS, "", v1alpha1::NO_EXECUTE);
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations), nullptr);
}

}  // namespace
}  // namespace outboard::sdk
