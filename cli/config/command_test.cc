#include "cli/config/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/config/testing/help_flags.h"

namespace outboard::config_command {
namespace {

using ::testing::ElementsAre;

TEST(ConfigCommandTest, ReadsItsArguments) {
  const auto line = ParseConfigLine({"f.yaml", "--host", "unix:/a", "--host=unix:/b"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->file, "f.yaml");
  EXPECT_THAT(line->hosts, ElementsAre("unix:/a", "unix:/b"));
  EXPECT_TRUE(ParseConfigLine({"f.yaml", "--without-hosts"})->without_hosts);
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(ParseConfigLine(arguments).status().message());
  };
  EXPECT_EQ(error({}), "FILE is missing");
  EXPECT_EQ(error({"a", "b"}), "unexpected argument \"b\"");
  EXPECT_EQ(error({"a", "--host", "unix:/h", "--without-hosts"}),
            "--host and --without-hosts exclude each other");
  EXPECT_EQ(error({"a", "--without-host"}),
            "unknown flag --without-host; did you mean --without-hosts?");
}

TEST(ConfigCommandTest, HelpListsEveryFlag) {
  ConfigLine line;
  EXPECT_THAT(ConfigFlags(&line).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kConfigHelp)));
}

TEST(ConfigCommandTest, ProblemsAreInTheOrderOfTheFile) {
  EXPECT_EQ(MergeProblems("f:1", "f:1:9:2: b\nf:1:10:1: c", "f:1: whole\nf:1:9:1: a\nf:1:9:2: b"),
            "f:1: whole\nf:1:9:1: a\nf:1:9:2: b\nf:1:10:1: c");
  EXPECT_EQ(MergeProblems("f", "", ""), "");
}

}  // namespace
}  // namespace outboard::config_command
