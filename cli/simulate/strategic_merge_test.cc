#include "cli/simulate/strategic_merge.h"

#include <gtest/gtest.h>

namespace outboard::simulate {
namespace {

using nlohmann::json;

json Merged(const char* object, const char* patch) {
  json merged = json::parse(object);
  StrategicMerge(json::parse(patch), &merged);
  return merged;
}

TEST(StrategicMerge, MembersMergeAndNullTakesOff) {
  EXPECT_EQ(Merged(R"({"a":{"b":1,"c":2},"l":[1,2]})", R"({"a":{"b":null,"d":3},"l":[3]})"),
            json::parse(R"({"a":{"c":2,"d":3},"l":[3]})"));
  EXPECT_EQ(Merged(R"({})", R"({"status":{"allocation":{"nodeSelector":{}}}})"),
            json::parse(R"({"status":{"allocation":{"nodeSelector":{}}}})"));
}

TEST(StrategicMerge, FinalizersAreUnited) {
  EXPECT_EQ(Merged(R"({"finalizers":["a"]})", R"({"finalizers":["b","a"]})"),
            json::parse(R"({"finalizers":["a","b"]})"));
  EXPECT_EQ(
      Merged(
          R"({"finalizers":["a","b"]})",
          R"({"$deleteFromPrimitiveList/finalizers":["a"],"$setElementOrder/finalizers":["b"]})"),
      json::parse(R"({"finalizers":["b"]})"));
}

TEST(StrategicMerge, ListsOfThingsWithAUidMergeByIt) {
  const char* const two = R"({"reservedFor":[{"uid":"1","name":"a"},{"uid":"2","name":"b"}]})";
  EXPECT_EQ(
      Merged(two, R"({"reservedFor":[{"uid":"3","name":"c"},{"uid":"2","name":"b"}]})"),
      json::parse(
          R"({"reservedFor":[{"uid":"1","name":"a"},{"uid":"2","name":"b"},{"uid":"3","name":"c"}]})"));
  EXPECT_EQ(Merged(two, R"({"reservedFor":[{"$patch":"delete","uid":"1"}]})"),
            json::parse(R"({"reservedFor":[{"uid":"2","name":"b"}]})"));
  EXPECT_EQ(Merged(two, R"({"reservedFor":[{"$patch":"delete","uid":"9"}]})"), json::parse(two));
}

}  // namespace
}  // namespace outboard::simulate
