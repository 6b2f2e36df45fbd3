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

TEST(ArgsReaderTest, TextThatIsNoObjectIsAProblem) {
  EXPECT_EQ(ArgsReader("{").Finish().size(), 1u);
  EXPECT_EQ(ArgsReader("[]").Finish().size(), 1u);
  EXPECT_TRUE(ArgsReader("").Finish().empty());
  EXPECT_TRUE(ArgsReader("null").Finish().empty());
}

}  // namespace
}  // namespace outboard::sdk
