#include "cli/config/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/config/profiles.h"
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

TEST(ConfigCommandTest, ReadsTheArgumentsOfDiff) {
  const auto line = ParseConfigLine({"diff", "f.yaml", "--server", "h:1"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->diff);
  EXPECT_EQ(line->file, "f.yaml");
  EXPECT_EQ(line->shim.server, "h:1");
  EXPECT_FALSE(ParseConfigLine({"./diff"})->diff);
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(ParseConfigLine(arguments).status().message());
  };
  EXPECT_EQ(error({"diff"}), "FILE is missing");
  EXPECT_EQ(error({"diff", "a", "b"}), "unexpected argument \"b\"");
  EXPECT_EQ(error({"diff", "a", "--without-hosts"}), "--host and --without-hosts are not for diff");
  EXPECT_EQ(error({"a", "--server", "h:1"}), "--server and its flags are for outboard config diff");
}

TEST(ConfigCommandTest, DiffComparesBothWithAllDefaults) {
  const std::string head =
      "apiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\nsocketDirectory: /s\n";
  const auto file = config::ParseConfig(head + "verbosity: 2\n", "f.yaml");
  ASSERT_TRUE(file.ok()) << file.status();
  // Defaults and the order of fields do not count.
  EXPECT_EQ(*ConfigDiff("# f.yaml was refused\n" + head +
                            "deadlines: {queue: 100ms}\nverbosity: 2\nexplainMemoryMiB: 64\n",
                        *file),
            "");
  // What the shim shows is read as what it is.
  EXPECT_EQ(*ConfigDiff(config::EffectiveConfigYaml(*file, nullptr), *file), "");
  const auto diff = ConfigDiff(head, *file);
  ASSERT_TRUE(diff.ok()) << diff.status();
  EXPECT_THAT(*diff, ::testing::StartsWith("--- the running configuration\n+++ f.yaml\n@@ "));
  EXPECT_THAT(*diff, ::testing::HasSubstr("\n-verbosity: 0\n+verbosity: 2\n"));
  EXPECT_THAT(std::string(ConfigDiff("newField: 1\n", *file).status().message()),
              ::testing::StartsWith("this version does not understand the shim's configuration: "));
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
