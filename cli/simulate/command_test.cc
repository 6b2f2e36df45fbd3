#include "cli/simulate/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "cli/manifests/kinds.h"
#include "shim/config/testing/help_flags.h"

namespace outboard::simulate {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  return std::string(ParseCommandLine(arguments).status().message());
}

TEST(SimulateCommandTest, HelpListsEveryFlag) {
  CommandLine line;
  EXPECT_THAT(SimulateFlags(&line).names(),
              UnorderedElementsAreArray(config::HelpFlags(kSimulateHelp)));
  trace::GenerateLine generate;
  EXPECT_THAT(trace::GenerateFlags(&generate).names(),
              UnorderedElementsAreArray(config::HelpFlags(trace::kGenerateHelp)));
}

TEST(SimulateCommandTest, HelpListsTheKindsThatAreRead) {
  const std::string help = kSimulateHelp;
  const size_t begin = help.find("Kinds that are read: ");
  ASSERT_NE(begin, std::string::npos);
  const std::string kinds = help.substr(begin, help.find("Other kinds", begin) - begin);
  for (const std::string& kind : manifests::KindNames(/*read=*/true))
    EXPECT_THAT(kinds, ContainsRegex("[ \n]" + kind + "[,; ]"));
}

TEST(SimulateCommandTest, ADashIsAFile) {
  const auto line = ParseCommandLine({"--cluster", "-", "a", "--pods=-", "--strict"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->cluster_files, ElementsAre("-", "a"));
  EXPECT_THAT(line->pod_files, ElementsAre("-"));
  EXPECT_TRUE(line->strict);
}

TEST(SimulateCommandTest, HelpTeachesWithin100Columns) {
  const std::string help = kSimulateHelp;
  const size_t examples = help.find("\nExamples:\n");
  const size_t flags = help.find("\n  --cluster FILE...  ");
  const size_t codes = help.find("\nExit codes:\n");
  EXPECT_LT(examples, flags);
  EXPECT_LT(flags, codes);
  EXPECT_NE(codes, std::string::npos);
  for (const char* text : {kSimulateHelp, kOutputHelp}) {
    for (const absl::string_view line : absl::StrSplit(text, '\n'))
      EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(SimulateCommandTest, ReadsAllFlags) {
  auto line = ParseCommandLine({"--cluster", "a.yaml", "b.yaml", "--pods=p.yaml", "--config", "c",
                                "-o", "json", "--host", "unix:1", "--host=unix:2", "--host-binary",
                                "h", "-v", "4"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_THAT(line->cluster_files, ElementsAre("a.yaml", "b.yaml"));
  EXPECT_THAT(line->pod_files, ElementsAre("p.yaml"));
  EXPECT_EQ(line->config_file, "c");
  EXPECT_TRUE(line->json);
  EXPECT_THAT(line->host_addresses, ElementsAre("unix:1", "unix:2"));
  EXPECT_EQ(line->host_binary, "h");
  EXPECT_EQ(line->verbosity, 4);
  line = ParseCommandLine({"--cluster=c", "--trace=t", "--from=1", "--to", "2.5", "--until=9",
                           "--interval=3", "--most-waiting", "7", "--equivalence-cache"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->trace_run.window.from, absl::Seconds(1));
  EXPECT_EQ(line->trace_run.window.to, absl::Seconds(2.5));
  EXPECT_EQ(line->trace_run.window.interval, absl::Seconds(3));
  EXPECT_EQ(line->trace_run.replay.until, absl::Seconds(9));
  EXPECT_EQ(line->trace_run.replay.most_waiting, 7u);
  EXPECT_TRUE(line->trace_run.equivalence_cache);
  line = ParseCommandLine(
      {"--cluster=c", "--pods=p", "--scheduler-name=gpu", "--until-settled", "--explain=a/b"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->scheduler_name, "gpu");
  EXPECT_TRUE(line->until_settled);
  EXPECT_EQ(line->explain, "a/b");
  EXPECT_FALSE(line->compares());
  line = ParseCommandLine(
      {"--cluster=c", "--pods=p", "--diff=new.yaml", "--diff-host=unix:1", "--diff-host=unix:2"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->compares());
  EXPECT_EQ(line->diff_config, "new.yaml");
  EXPECT_THAT(line->diff_hosts, ElementsAre("unix:1", "unix:2"));
  line = ParseCommandLine({"--help", "output"});
  ASSERT_TRUE(line.ok());
  EXPECT_TRUE(line->help && line->help_output);
  line = ParseCommandLine({"--help", "trace"});
  ASSERT_TRUE(line.ok());
  EXPECT_TRUE(line->help && line->help_trace);
}

TEST(SimulateCommandTest, TheLogIsSilentUnlessAskedFor) {
  const std::vector<std::string> files = {"--cluster", "c", "--pods", "p"};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), files.begin(), files.end());
    return *ParseCommandLine(flags);
  };
  EXPECT_FALSE(with({}).verbose);
  for (const char* flag : {"-v", "--v", "--verbose"}) {
    EXPECT_TRUE(with({flag}).verbose) << flag;
    EXPECT_EQ(with({flag}).verbosity, 0) << flag;
    EXPECT_EQ(with({flag, "2"}).verbosity, 2) << flag;
  }
  EXPECT_EQ(with({"--v=3"}).verbosity, 3);
}

TEST(SimulateCommandTest, AcceptsTheOldNameOfEquivalenceCache) {
  ::testing::internal::CaptureStderr();
  const auto line = ParseCommandLine({"--cluster=c", "--trace=t", "--spare-attempts"});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("--spare-attempts is deprecated and will be removed; use "
                        "--equivalence-cache"));
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_TRUE(line->trace_run.equivalence_cache);
}

TEST(SimulateCommandTest, ErrorsNameTheFlag) {
  EXPECT_EQ(ErrorOf({}), "--cluster FILE is required");
  EXPECT_EQ(ErrorOf({"--cluster"}), "--cluster needs a value");
  EXPECT_EQ(ErrorOf({"x"}), "unexpected argument \"x\"");
  EXPECT_EQ(ErrorOf({"--clusters=x"}), "unknown flag --clusters; did you mean --cluster?");
  EXPECT_EQ(ErrorOf({"--cluster=c"}), "--pods FILE or --trace FILE is required");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--trace=t"}),
            "--pods and --trace exclude each other");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--until=5"}), "--until requires --trace");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--equivalence-cache"}),
            "--equivalence-cache requires --trace");
  for (const char* flag : {"--scheduler-name", "--explain", "--diff", "--diff-host"}) {
    EXPECT_EQ(ErrorOf({"--cluster=c", "--trace=t", flag, "unix:x"}),
              std::string(flag) + " requires --pods");
  }
  EXPECT_EQ(ErrorOf({"--cluster=c", "--trace=t", "--until-settled"}),
            "--until-settled requires --pods");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--explain=p", "--diff=d"}),
            "--explain and --diff exclude each other");
  for (const char* flag : {"--host", "--diff-host"}) {
    EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", flag, "host.sock"}),
              std::string(flag) + " must be unix:PATH, not \"host.sock\"");
  }
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--diff="}), "--diff must be a file, not \"\"");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--trace=t", "--until=soon"}),
            "--until must be a number of seconds, not \"soon\"");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--trace=t", "--most-waiting=-1"}),
            "--most-waiting must be a number of pods, not \"-1\"");
  EXPECT_EQ(ErrorOf({"--cluster=c", "--pods=p", "--v=11"}),
            "--verbose must be a number from 0 to 10, not \"11\"");
}

}  // namespace
}  // namespace outboard::simulate
