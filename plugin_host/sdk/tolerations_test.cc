#include "plugin_host/sdk/tolerations.h"

#include <gtest/gtest.h>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::sdk {
namespace {

using v1beta1::Toleration;

v1beta1::Taint MakeTaint(const std::string& key, const std::string& value,
                         v1beta1::TaintEffect effect) {
  v1beta1::Taint taint;
  taint.set_key(key);
  taint.set_value(value);
  taint.set_effect(effect);
  return taint;
}

Toleration MakeToleration(const std::string& key, Toleration::Operator op, const std::string& value,
                          v1beta1::TaintEffect effect) {
  Toleration toleration;
  toleration.set_key(key);
  toleration.set_operator_(op);
  toleration.set_value(value);
  toleration.set_effect(effect);
  return toleration;
}

TEST(TolerationsTest, FollowsKubernetesRules) {
  const auto taint = MakeTaint("k", "v", v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  const auto any = v1beta1::TAINT_EFFECT_UNSPECIFIED;
  EXPECT_TRUE(Tolerates(MakeToleration("k", Toleration::OPERATOR_EQUAL, "v", any), taint));
  EXPECT_TRUE(Tolerates(MakeToleration("k", Toleration::OPERATOR_UNSPECIFIED, "v", any), taint));
  EXPECT_FALSE(Tolerates(MakeToleration("k", Toleration::OPERATOR_EQUAL, "w", any), taint));
  EXPECT_FALSE(Tolerates(MakeToleration("j", Toleration::OPERATOR_EXISTS, "", any), taint));
  EXPECT_TRUE(Tolerates(MakeToleration("", Toleration::OPERATOR_EXISTS, "", any), taint));
  EXPECT_FALSE(Tolerates(
      MakeToleration("k", Toleration::OPERATOR_EXISTS, "", v1beta1::TAINT_EFFECT_NO_EXECUTE),
      taint));
  EXPECT_FALSE(
      Tolerates(MakeToleration("k", static_cast<Toleration::Operator>(9), "v", any), taint));
}

TEST(TolerationsTest, FindsTheFirstTaintThatKeepsThePodAway) {
  const std::vector<v1beta1::Taint> taints = {
      MakeTaint("soft", "", v1beta1::TAINT_EFFECT_PREFER_NO_SCHEDULE),
      MakeTaint("a", "", v1beta1::TAINT_EFFECT_NO_SCHEDULE),
      MakeTaint("b", "", v1beta1::TAINT_EFFECT_NO_EXECUTE)};
  Tolerations tolerations;
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations)->key(), "a");
  *tolerations.Add() =
      MakeToleration("a", Toleration::OPERATOR_EXISTS, "", v1beta1::TAINT_EFFECT_NO_SCHEDULE);
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations)->key(), "b");
  *tolerations.Add() =
      MakeToleration("b", Toleration::OPERATOR_EXISTS, "", v1beta1::TAINT_EFFECT_NO_EXECUTE);
  EXPECT_EQ(FindUntoleratedTaint(taints, tolerations), nullptr);
}

}  // namespace
}  // namespace outboard::sdk
