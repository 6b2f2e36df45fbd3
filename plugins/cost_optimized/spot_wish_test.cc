// The rules of precedence are in testdata/spot.case.
#include "plugins/cost_optimized/spot_wish.h"

#include <gtest/gtest.h>

#include <string>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::cost_optimized::spot_wish_test {
namespace {

SpotRules Read(const std::string& args) {
  sdk::ArgsReader reader(args);
  SpotRules rules = SpotRules::Read(reader.root());
  for (const sdk::ArgsProblem& problem : reader.Finish())
    ADD_FAILURE() << problem.field << ": " << problem.message;
  return rules;
}

v1beta1::ClusterObject PriorityClass(const std::string& name, const std::string& wish,
                                     const char* resource = kPriorityClasses) {
  v1beta1::ClusterObject object;
  v1beta1::GenericObject& generic = *object.mutable_generic_object();
  generic.set_resource(resource);
  generic.set_name(name);
  generic.set_json(R"({"metadata":{"annotations":{"outboard/spot":")" + wish + R"("}}})");
  return object;
}

TEST(SpotWishTest, NamesAreReadInAnyCase) {
  for (const SpotWish wish : {SpotWish::kNeutral, SpotWish::kWelcome, SpotWish::kAverse})
    EXPECT_EQ(ParseSpotWish(SpotWishName(wish)), wish);
  EXPECT_EQ(ParseSpotWish("AVERSE"), SpotWish::kAverse);
  for (const char* text : {"", "true", "welcome ", "never"})
    EXPECT_EQ(ParseSpotWish(text), std::nullopt) << text;
}

TEST(SpotWishTest, TrainingIsRecognisedByOwnerAndImage) {
  const SpotRules rules = Read("");
  sdk::testing::PodBuilder pod("p");
  EXPECT_EQ(rules.WishOf(pod.Build(), nullptr), SpotWish::kNeutral);
  pod.proto().mutable_controller()->set_kind("PyTorchJob");
  EXPECT_EQ(rules.WishOf(pod.Build(), nullptr), SpotWish::kAverse);
}

TEST(SpotWishTest, PriorityClassesMayChangeAndGo) {
  SpotRules rules = Read(R"({"spot": {"priorityClasses": {"batch": "averse"}}})");
  sdk::testing::PodBuilder pod("p");
  pod.proto().set_priority_class_name("batch");
  const v1beta1::Pod built = pod.Build();
  EXPECT_EQ(rules.WishOf(built, nullptr), SpotWish::kAverse);
  rules.SetObject(PriorityClass("batch", "welcome", "widgets.v1.example.com"), nullptr);
  EXPECT_EQ(rules.WishOf(built, nullptr), SpotWish::kAverse) << "another kind";
  rules.SetObject(PriorityClass("batch", "welcome"), nullptr);
  EXPECT_EQ(rules.WishOf(built, nullptr), SpotWish::kWelcome);
  rules.SetObject(PriorityClass("batch", "neutral"), nullptr);
  EXPECT_EQ(rules.WishOf(built, nullptr), SpotWish::kNeutral);
  rules.RemoveObject(PriorityClass("batch", "neutral"), nullptr);
  EXPECT_EQ(rules.WishOf(built, nullptr), SpotWish::kAverse);
}

TEST(SpotWishTest, MalformedValuesAreReportedOnce) {
  SpotRules rules = Read("");
  sdk::MalformedValues malformed("CostOptimized");
  const v1beta1::Pod pod =
      sdk::testing::PodBuilder("p").Annotation(kSpotKey, "yes").Label(kSpotKey, "no").Build();
  rules.WishOf(pod, &malformed);
  rules.WishOf(pod, &malformed);
  EXPECT_EQ(malformed.warned(), 1) << "one for the key";
  rules.SetObject(PriorityClass("batch", "yes"), &malformed);
  EXPECT_EQ(malformed.warned(), 2);
}

}  // namespace
}  // namespace outboard::cost_optimized::spot_wish_test
