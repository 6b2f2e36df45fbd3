#include "plugin_host/sdk/args_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outboard::sdk {
namespace {

std::vector<std::string> Texts(const std::vector<ArgsProblem>& problems) {
  std::vector<std::string> texts;
  for (const ArgsProblem& problem : problems) {
    texts.push_back(problem.field + ": " + problem.message);
  }
  return texts;
}

TEST(ArgsReaderTest, ReadsValuesAndDefaults) {
  ArgsReader reader(R"({"a": 3, "b": {"c": ["x"]}, "d": null, "e": "1m30s", "f": 0.5, "g": true})");
  const ArgsObject args = reader.root();
  EXPECT_EQ(args.Int("a", 1), 3);
  EXPECT_EQ(args.Object("b").Strings("c"), std::vector<std::string>{"x"});
  EXPECT_EQ(args.String("d", "default"), "default");
  EXPECT_EQ(args.Duration("e", absl::Seconds(1)), absl::Seconds(90));
  EXPECT_EQ(args.Double("f", 0), 0.5);
  EXPECT_TRUE(args.Bool("g", false));
  EXPECT_EQ(args.Object("absent").Int("x", 7), 7);
  EXPECT_TRUE(reader.Finish().empty());
}

TEST(ArgsReaderTest, ReadsListsOfIntegers) {
  ArgsReader reader(R"({"a": [3, -4], "b": [1.5, "x", 18446744073709551615, 5], "c": 6})");
  const ArgsObject args = reader.root();
  EXPECT_EQ(args.Ints("a"), (std::vector<int64_t>{3, -4}));
  EXPECT_EQ(args.Ints("b"), std::vector<int64_t>{5});
  EXPECT_EQ(args.Ints("c", {7}), std::vector<int64_t>{7});
  EXPECT_EQ(args.Ints("absent", {8}), std::vector<int64_t>{8});
  EXPECT_THAT(Texts(reader.Finish()),
              ::testing::UnorderedElementsAre("b[0]: must be an integer, not a number",
                                              "b[1]: must be an integer, not a string",
                                              "b[2]: must be an integer, not a number",
                                              "c: must be a list of integers, not a number"));
}

TEST(ArgsReaderTest, NamesEveryFieldThatIsWrongOrUnknown) {
  ArgsReader reader(R"({"a": "x", "list": [{"w": 1.5}, 3], "more": 1, "o": {"y": 1}})");
  const ArgsObject args = reader.root();
  EXPECT_EQ(args.Int("a", 1), 1);
  for (const ArgsObject& item : args.Objects("list")) item.Int("w", 0);
  args.Object("o").Int("x", 0);
  EXPECT_THAT(Texts(reader.Finish()),
              ::testing::UnorderedElementsAre("a: must be an integer, not a string",
                                              "list[0].w: must be an integer, not a number",
                                              "list[1]: must be an object, not a number",
                                              "more: unknown field \"more\"",
                                              "o.y: unknown field \"o.y\""));
}

TEST(ArgsReaderTest, WarningsLeaveTheArgumentsInForce) {
  ArgsReader reader(R"({"o": {"old": 1}})");
  const ArgsObject object = reader.root().Object("o");
  object.Int("old", 0);
  object.Warning("old", "ignored since 1.1");
  EXPECT_TRUE(reader.ok());
  const std::vector<ArgsProblem> problems = reader.Finish();
  EXPECT_THAT(Texts(problems), ::testing::ElementsAre("o.old: ignored since 1.1"));
  EXPECT_TRUE(problems[0].is_warning);
  object.Problem("old", "too much");
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.Finish()[1].is_warning);
}

TEST(ArgsReaderTest, TextThatIsNotAnObjectIsAProblem) {
  EXPECT_EQ(ArgsReader("{").Finish().size(), 1u);
  EXPECT_EQ(ArgsReader("[]").Finish().size(), 1u);
  EXPECT_TRUE(ArgsReader("").Finish().empty());
  EXPECT_TRUE(ArgsReader("null").Finish().empty());
}

}  // namespace
}  // namespace outboard::sdk
