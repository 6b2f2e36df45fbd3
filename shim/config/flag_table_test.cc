#include "shim/config/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace outboard::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FlagTableTest : public ::testing::Test {
 protected:
  FlagTableTest() {
    table_.Switch("--all", &all_);
    table_.Text("--file", &file_);
    table_.Texts("--host", &hosts_);
    table_.List("--cluster", &clusters_);
    table_.Number("--limit", "a number from 1 to 9", &limit_, 1, 9);
    table_.Number("--load", "a number", &load_);
    table_.Duration("--timeout", &timeout_);
    table_.Output(&json_);
    table_.Choice("--color", {"blue", "green"}, &color_, " (or paint it)");
    table_.OptionalValue("-v,--verbose", "a level", [this](const std::string& value) {
      level_ = value.empty() ? "none" : value;
      return value != "x";
    });
    table_.Renamed("--every", "--all");
  }
  std::string Error(const std::vector<std::string>& arguments) {
    FlagTable table = table_;
    return std::string(table.Parse(arguments).message());
  }

  FlagTable table_;
  bool all_ = false, json_ = false;
  std::string file_ = "default", level_, color_;
  std::vector<std::string> hosts_, clusters_;
  int limit_ = 5;
  double load_ = 0;
  absl::Duration timeout_;
};

TEST_F(FlagTableTest, ReadsEveryForm) {
  ASSERT_TRUE(table_
                  .Parse({"word", "--file=a=b", "--host", "h1", "--host=[h2]", "--cluster", "c1",
                          "c2", "--limit", "7", "--load=0.5", "--timeout=3s", "-o", "json", "--all",
                          "--cluster=c3", "-v"})
                  .ok());
  EXPECT_THAT(table_.words(), ElementsAre("word"));
  EXPECT_EQ(file_, "a=b");
  EXPECT_THAT(hosts_, ElementsAre("h1", "[h2]"));
  EXPECT_THAT(clusters_, ElementsAre("c1", "c2", "c3"));
  EXPECT_EQ(limit_, 7);
  EXPECT_EQ(load_, 0.5);
  EXPECT_EQ(timeout_, absl::Seconds(3));
  EXPECT_TRUE(json_);
  EXPECT_TRUE(all_);
  EXPECT_EQ(level_, "none");
}

TEST_F(FlagTableTest, TheLastValueCounts) {
  ASSERT_TRUE(table_.Parse({"--file", "a", "--file=b", "-v", "2"}).ok());
  EXPECT_EQ(file_, "b");
  EXPECT_EQ(level_, "2");
}

TEST_F(FlagTableTest, AValueMayBeEmptyOrBeginWithADash) {
  ASSERT_TRUE(table_.Parse({"--file=", "--host", "--all", "--", "-w"}).ok());
  EXPECT_EQ(file_, "");
  EXPECT_THAT(hosts_, ElementsAre("--all"));
  EXPECT_FALSE(all_);
  EXPECT_THAT(table_.words(), ElementsAre("-w"));
}

TEST_F(FlagTableTest, HelpStoresNothing) {
  ASSERT_TRUE(table_.Parse({"--file", "a", "-h", "--unknown"}).ok());
  EXPECT_TRUE(table_.help());
  EXPECT_EQ(file_, "default");
}

TEST_F(FlagTableTest, ErrorsNameTheFlag) {
  EXPECT_EQ(Error({"--fil=x"}), "unknown flag --fil; did you mean --file?");
  EXPECT_EQ(Error({"--clus", "c"}), "unknown flag --clus; did you mean --cluster?");
  EXPECT_EQ(Error({"-output=json"}), "unknown flag -output; did you mean --output?");
  EXPECT_EQ(Error({"--every-node"}), "unknown flag --every-node");
  EXPECT_EQ(Error({"-x"}), "unknown flag -x");
  EXPECT_EQ(Error({"--color", "red"}), "--color must be blue or green (or paint it), not \"red\"");
  EXPECT_EQ(Error({"--file"}), "--file needs a value");
  EXPECT_EQ(Error({"--cluster", "--all"}), "--cluster needs a value");
  EXPECT_EQ(Error({"--all=yes"}), "--all takes no value");
  EXPECT_EQ(Error({"--all="}), "--all takes no value");
  EXPECT_EQ(Error({"--limit", "10"}), "--limit must be a number from 1 to 9, not \"10\"");
  EXPECT_EQ(Error({"--limit="}), "--limit must be a number from 1 to 9, not \"\"");
  EXPECT_EQ(Error({"--load", "nan"}), "--load must be a number, not \"nan\"");
  EXPECT_EQ(Error({"--timeout", "-1s"}), "--timeout must be a duration such as 30s, not \"-1s\"");
  EXPECT_EQ(Error({"-o", "yaml"}), "--output must be table or json, not \"yaml\"");
  EXPECT_EQ(Error({"-v", "x"}), "--verbose must be a level, not \"x\"");
}

TEST_F(FlagTableTest, TellsWhatFlagsTake) {
  std::string told;
  for (const FlagTable::Flag& flag : table_.flags()) {
    absl::StrAppend(&told, absl::StrJoin(flag.names, ","), flag.takes_value ? "=" : "",
                    absl::StrJoin(flag.choices, "|"), " ");
  }
  EXPECT_EQ(told,
            "-h,--help --all --file= --host= --cluster= --limit= --load= --timeout= "
            "-o,--output=table|json --color=blue|green -v,--verbose ");
}

TEST_F(FlagTableTest, AValueMayLookLikeAFlagWithOneDash) {
  ASSERT_TRUE(table_.Parse({"--file", "-output", "--", "-file"}).ok());
  EXPECT_EQ(file_, "-output");
  EXPECT_THAT(table_.words(), ElementsAre("-file"));
}

TEST_F(FlagTableTest, AnOldNameWorksWithAWarning) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(table_.Parse({"--every"}).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "warning: --every is deprecated and will be removed; use --all\n");
  EXPECT_TRUE(all_);
  EXPECT_THAT(table_.names(), ::testing::Not(::testing::Contains("--every")));
}

}  // namespace
}  // namespace outboard::config
