#include "plugin_host/sdk/prometheus/matchers.h"

#include <gtest/gtest.h>

#include <vector>

namespace outboard::prometheus::matchers_test {
namespace {

TEST(MatchersTest, ReadsLabelsAndReportsNamesThatAreNot) {
  sdk::ArgsReader good(R"({"matchers": {"cluster": "a", "env": "b"}})");
  EXPECT_EQ(ReadMatchers(good.root()), (Matchers{{"cluster", "a"}, {"env", "b"}}));
  EXPECT_TRUE(good.Finish().empty());
  sdk::ArgsReader wrong(R"({"matchers": {"a-b": "c"}})");
  ReadMatchers(wrong.root());
  const std::vector<sdk::ArgsProblem> problems = wrong.Finish();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field, "matchers.a-b");
}

TEST(MatchersTest, SelectorsAreQuoted) {
  EXPECT_EQ(SelectorOf({}), "{}");
  EXPECT_EQ(SelectorOf({{"cluster", "a\"b"}, {"env", "p"}}), "{cluster=\"a\\\"b\",env=\"p\"}");
}

}  // namespace
}  // namespace outboard::prometheus::matchers_test
