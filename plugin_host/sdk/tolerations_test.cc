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

TEST(TolerationsTest, ComparesIntegersInCanonicalForm) {
  const auto effect = v1beta1::TAINT_EFFECT_NO_SCHEDULE;
  struct Case {
    const char* taint;
    const char* toleration;
    bool lt;
    bool gt;
  };
  const Case kCases[] = {
      {"5", "10", true, false},
      {"10", "5", false, true},
      {"5", "5", false, false},
      {"-10", "-5", true, false},
      {"0", "-1", false, true},
      {"-9223372036854775808", "9223372036854775807", true, false},
      // Beyond 64 bits.
      {"5", "9223372036854775808", false, false},
      {"-9223372036854775809", "5", false, false},
      // Not in canonical form.
      {"05", "10", false, false},
      {"5", "010", false, false},
      {"+5", "10", false, false},
      {"-0", "10", false, false},
      {"00", "10", false, false},
      {" 5", "10", false, false},
      {"5 ", "10", false, false},
      {"-", "10", false, false},
      {"", "10", false, false},
      {"5", "", false, false},
      {"5.0", "10", false, false},
      {"0x5", "10", false, false},
      {"five", "10", false, false},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(std::string(one.taint) + " and " + one.toleration);
    const auto taint = MakeTaint("k", one.taint, effect);
    EXPECT_EQ(
        Tolerates(MakeToleration("k", Toleration::OPERATOR_LT, one.toleration, effect), taint),
        one.lt);
    EXPECT_EQ(
        Tolerates(MakeToleration("k", Toleration::OPERATOR_GT, one.toleration, effect), taint),
        one.gt);
  }
  const auto taint = MakeTaint("k", "5", effect);
  EXPECT_FALSE(Tolerates(MakeToleration("j", Toleration::OPERATOR_LT, "10", effect), taint));
  EXPECT_FALSE(Tolerates(
      MakeToleration("k", Toleration::OPERATOR_LT, "10", v1beta1::TAINT_EFFECT_NO_EXECUTE), taint));
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
