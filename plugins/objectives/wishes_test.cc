#include "plugins/objectives/wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin_host/sdk/testing/builders.h"

namespace outboard::objectives {
namespace {

using sdk::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const std::vector<std::string>& Levels() {
  static const std::vector<std::string>& levels = *new std::vector<std::string>{"rack", "zone"};
  return levels;
}

TEST(Wishes, NamesAreSeparatedByCommas) {
  EXPECT_THAT(ParseNames("a").value(), ElementsAre("a"));
  EXPECT_THAT(ParseNames(" a , b").value(), ElementsAre("a", "b"));
  std::string many = "0";
  for (int i = 1; i < 32; ++i) many += "," + std::to_string(i);
  EXPECT_EQ(ParseNames(many)->size(), 32u);
  for (const std::string& text : {std::string(), std::string(","), std::string("a,"),
                                  std::string("a,a"), std::string(" "), many + ",32"}) {
    EXPECT_FALSE(ParseNames(text)) << text;
  }
}

TEST(Wishes, PairsHaveAKey) {
  EXPECT_THAT(ParsePairs("a=b,c=").value(), ElementsAre(Pair("a", "b"), Pair("c", "")));
  EXPECT_THAT(ParsePairs("a=b=c").value(), ElementsAre(Pair("a", "b=c")));
  for (const char* text : {"", "a", "=b", "a=1,a=2", "a=1,,b=2"}) EXPECT_FALSE(ParsePairs(text));
}

TEST(Wishes, WeightsThatAreNotNamedAreTheDefaults) {
  sdk::MalformedValues malformed("Objectives");
  const Weights defaults = {.cost = 5, .distance = 6, .gpu = 7, .cpu = 8};
  const Weights weights =
      ReadPreferences(PodBuilder("p").Annotation(kWeightsAnnotation, "cost=0, gpu=0.5"), defaults,
                      &malformed)
          .weights;
  EXPECT_EQ(weights.cost, 0);
  EXPECT_EQ(weights.distance, 6);
  EXPECT_EQ(weights.gpu, 0.5);
  EXPECT_EQ(weights.cpu, 8);
  EXPECT_EQ(malformed.warned(), 0);
}

TEST(Wishes, WeightsThatCannotBeReadAreAbsent) {
  const Weights defaults = {.cost = 5, .distance = 6, .gpu = 7, .cpu = 8};
  for (const char* text : {"", "cost", "cost=-1", "cost=1001", "cost=nan", "price=1",
                           "cost=1,cost=2", "cost=1,gpu=x", "cost=٣"}) {
    sdk::MalformedValues malformed("Objectives");
    const Weights weights =
        ReadPreferences(PodBuilder("p").Annotation(kWeightsAnnotation, text), defaults, &malformed)
            .weights;
    EXPECT_EQ(weights.cost, 5) << text;
    EXPECT_EQ(weights.gpu, 7) << text;
    EXPECT_EQ(malformed.warned(), 1) << text;
  }
}

TEST(Wishes, BoundsThatCannotBeReadAreAbsent) {
  for (const char* key : {kLatestStartAnnotation, kHighestCostAnnotation, kRegionsAnnotation,
                          kDataWithinAnnotation}) {
    for (const char* text : {"", ",", "\xff", "-1,-1"}) {
      sdk::MalformedValues malformed("Objectives");
      PodBuilder pod("p");
      pod.Annotation(key, text).Annotation(kDataAnnotation, "d");
      const bool is_bound = ReadBounds(pod, Levels(), &malformed).any();
      EXPECT_EQ(is_bound, malformed.warned() == 0) << key << "=" << text;
    }
  }
  EXPECT_FALSE(ReadBounds(PodBuilder("p"), Levels(), nullptr).any());
}

TEST(Wishes, DataIsABoundOnlyWithALevel) {
  PodBuilder pod("p");
  pod.Annotation(kDataAnnotation, "d");
  EXPECT_FALSE(ReadBounds(pod, Levels(), nullptr).any());
  pod.Annotation(kDataWithinAnnotation, "zone");
  EXPECT_EQ(ReadBounds(pod, Levels(), nullptr).data_within, 2u);
  EXPECT_THAT(ReadBounds(pod, Levels(), nullptr).data, ElementsAre("d"));
  EXPECT_EQ(ReadBounds(PodBuilder("p")
                           .Annotation(kDataAnnotation, "d")
                           .Annotation(kDataWithinAnnotation, "node"),
                       Levels(), nullptr)
                .data_within,
            0u);
  // A level without data sets no bound.
  EXPECT_FALSE(
      ReadBounds(PodBuilder("p").Annotation(kDataWithinAnnotation, "zone"), Levels(), nullptr)
          .any());
}

TEST(Wishes, LicencesAreCounts) {
  sdk::MalformedValues malformed("Objectives");
  EXPECT_THAT(ReadLicences(PodBuilder("p")
                               .Label("licence.outboard/b", "2")
                               .Label("licence.outboard/a", "1")
                               .Label("licence.outboard/none", "0")
                               .Label("licence", "3"),
                           &malformed),
              ElementsAre(Pair("a", 1), Pair("b", 2)));
  EXPECT_EQ(malformed.warned(), 0);
  for (const char* text : {"", "-1", "1.5", "many", "1000000001", "99999999999999999999"}) {
    EXPECT_THAT(ReadLicences(PodBuilder("p").Label("licence.outboard/a", text), &malformed),
                IsEmpty());
  }
  EXPECT_EQ(malformed.warned(), 1);
}

}  // namespace
}  // namespace outboard::objectives
