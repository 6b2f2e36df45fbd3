#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/plugin/commands.h"
#include "cli/plugin/program.h"
#include "cli/plugin/replacement.h"
#include "shim/config/testing/help_flags.h"

namespace outboard::plugin_command {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Read(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(NewPluginTest, NamesInAllSpellings) {
  EXPECT_EQ(NamesOf("PriceScore").snake, "price_score");
  EXPECT_EQ(NamesOf("GPUAware").snake, "gpu_aware");
  EXPECT_EQ(NamesOf("NodeV2Score").dashes, "node-v2-score");
  EXPECT_EQ(FillTemplate("ExamplePlugin example_plugin.cc EXAMPLE_PLUGIN_H_ example-plugin/price",
                         NamesOf("PriceScore")),
            "PriceScore price_score.cc PRICE_SCORE_H_ price-score/price");
}

TEST(NewPluginTest, RefusesInvalidNames) {
  EXPECT_TRUE(CheckPluginName("PriceScore").ok());
  for (const char* name : {"", "P", "priceScore", "Price-Score", "../Price", "Price Score"})
    EXPECT_FALSE(CheckPluginName(name).ok()) << name;
}

TEST(NewPluginTest, RefusesNamesInUse) {
  const std::vector<std::string> served = {"GPUAware", "NodeName"};
  EXPECT_TRUE(CheckNotServed("PriceScore", served).ok());
  EXPECT_EQ(
      CheckNotServed("GPUAware", served).message(),
      "\"GPUAware\" is a plugin of outboard-host or kube-scheduler; choose another name. Names "
      "in use: GPUAware, NodeName");
  EXPECT_EQ(
      CheckNotServed("GangScheduling", {}).message(),
      "\"GangScheduling\" is a plugin of outboard-host or kube-scheduler; choose another name");
}

TEST(NewPluginTest, TellsWhatTheFolderIsAndWhereThePackageIs) {
  EXPECT_EQ(NextSteps({"cpp", "price_score"}, "PriceScore", ""),
            "price_score/ contains PriceScore, a working plugin: it keeps pods off nodes that cost "
            "too much.\n"
            "price_score/README.md says how to build, test and use it; PACKAGE is the package that "
            "`./dev package` writes, unpacked.\n");
  EXPECT_EQ(NextSteps({"python", "near"}, "Near", "/opt/outboard"),
            "near/ contains Near, a working plugin: it prefers nodes with the pod's dataset.\n"
            "near/README.md says how to build, test and use it; PACKAGE is /opt/outboard.\n");
}

// The names must not change where lines are wrapped.
TEST(NewPluginTest, WritesFormattedSources) {
  if (system("command -v clang-format-14 >/dev/null") != 0)
    GTEST_SKIP() << "clang-format-14 is missing";
  for (const char* name : {"PriceScore", "GPUX", "FreeLicencesOfTenants"}) {
    const std::string into = absl::StrCat(::testing::TempDir(), "formatted-plugin-", getpid());
    ASSERT_TRUE(CopyTemplate("sdk/templates/cpp", NamesOf(name), into).ok());
    EXPECT_EQ(
        system(absl::StrCat("clang-format-14 --dry-run -Werror ", into, "/*.cc ", into, "/*.h")
                   .c_str()),
        0)
        << name;
    fs::remove_all(into);
    ASSERT_TRUE(CopyTemplate("sdk/templates/python", NamesOf(name), into).ok());
    for (const auto& entry : fs::directory_iterator(into)) {
      if (entry.path().extension() != ".py") continue;
      for (absl::string_view line : absl::StrSplit(Read(entry.path()), '\n'))
        EXPECT_LE(line.size(), 100u) << line;
    }
    fs::remove_all(into);
  }
}

TEST(NewPluginTest, WritesTheTemplatesWithoutOverwriting) {
  const std::string into = absl::StrCat(::testing::TempDir(), "new-plugin-", getpid());
  fs::remove_all(into);
  for (const char* language : {"cpp", "python"}) {
    ASSERT_TRUE(
        CopyTemplate(absl::StrCat("sdk/templates/", language), NamesOf("PriceScore"), into).ok());
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(into)) {
      if (entry.is_directory()) continue;
      ++files;
      EXPECT_THAT(entry.path().string(), Not(HasSubstr("example")));
      EXPECT_THAT(Read(entry.path()), Not(HasSubstr("ExamplePlugin"))) << entry.path();
      EXPECT_THAT(Read(entry.path()), Not(HasSubstr("example_plugin"))) << entry.path();
    }
    EXPECT_GE(files, 6);
    EXPECT_TRUE(absl::IsAlreadyExists(
        CopyTemplate(absl::StrCat("sdk/templates/", language), NamesOf("PriceScore"), into)));
    fs::remove_all(into);
  }
  EXPECT_TRUE(absl::IsNotFound(CopyTemplate("sdk/templates/cobol", NamesOf("PriceScore"), into)));
  fs::remove_all(into);
}

TEST(ProgramTest, ReturnsOutputOrError) {
  EXPECT_EQ(RunProgram({"echo", "a b"}).value(), "a b\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(RunProgram({"false"}).status()));
  EXPECT_TRUE(absl::IsUnavailable(RunProgram({"/nothing/there"}).status()));
}

constexpr char kPage[] = R"({"instances": [
  {"host": "main", "instance": "a", "state": "standby", "why": "b took over", "buildDigest": "p+0001", "started": "2026-01-01T00:00:01.000000Z"},
  {"host": "main", "instance": "b", "state": "serving", "buildDigest": "p+0002", "started": "2026-01-01T00:00:02.000000Z",
   "shadow": {"cycles": 20, "placements": 3, "placementsTold": 20, "plugins": {"PriceScore": {"verdicts": 1, "scores": 40}}, "examples": ["pod a: n1, not n2"]}},
  {"host": "main", "instance": "c", "state": "syncing", "why": "receives the cluster state", "buildDigest": "p+0001", "started": "2026-01-01T00:00:03.000000Z"},
  {"host": "main", "instance": "d", "state": "quarantined", "why": "two calls without an answer", "buildDigest": "p+0003", "started": "2026-01-01T00:00:04.000000Z"},
  {"host": "python", "instance": "e", "state": "serving", "buildDigest": "q", "started": "2026-01-01T00:00:05.000000Z",
   "shadow": {"cycles": 20, "placements": 0, "placementsTold": 0, "plugins": {"Other": {"verdicts": 1, "scores": 0}}, "examples": []}},
  {"host": "main", "instance": "f", "state": "shadow", "buildDigest": "p", "started": "2026-01-01T00:00:04.500000Z"}]})";

TEST(ReplacementTest, FindsTheNewestInstanceWithTheSet) {
  const auto progress = [](const std::string& set, std::set<std::string> hosts = {}) {
    return ProgressOf(kPage, {set, std::move(hosts), absl::InfinitePast()}).value();
  };
  EXPECT_EQ(progress("0001").instance, "c");
  EXPECT_EQ(progress("0001").kind, Progress::Kind::kUnderWay);
  EXPECT_EQ(progress("0002").kind, Progress::Kind::kServes);
  EXPECT_EQ(
      progress("0002").shadow,
      "3 of 20 pods would have got another node; PriceScore: 1 verdicts and 40 scores differ\n"
      "  pod a: n1, not n2");
  EXPECT_EQ(progress("0003").kind, Progress::Kind::kFailed);
  EXPECT_EQ(progress("0003").why, "two calls without an answer");
  absl::Time later;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, "2026-01-01T00:00:04.1Z", &later, nullptr));
  EXPECT_EQ(ProgressOf(kPage, {"0003", {}, later}).value().kind, Progress::Kind::kNotThere);
  EXPECT_EQ(ProgressOf(kPage, {"0002", {}, later}).value().kind, Progress::Kind::kServes);
  EXPECT_EQ(progress("0004").kind, Progress::Kind::kNotThere);
  EXPECT_EQ(progress("").instance, "e");
  EXPECT_EQ(progress("").shadow,
            "20 cycles, which do not determine nodes; Other: 1 verdicts and 0 "
            "scores differ");
  EXPECT_EQ(progress("", {"main"}).instance, "f");
  EXPECT_THAT(HostsWith(kPage, "0002").value(), ElementsAre("main"));
  EXPECT_THAT(HostsWith(kPage, "0009").value(), IsEmpty());
  EXPECT_FALSE(ProgressOf("<html>", {}).ok());
}

TEST(CommandTest, HelpListsEveryFlag) {
  NewLine new_line;
  EXPECT_THAT(NewFlags(&new_line).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kNewHelp)));
  PluginLine line;
  EXPECT_THAT(PluginFlags(&line).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kPluginHelp)));
}

TEST(CommandTest, WrongUsage) {
  EXPECT_EQ(RunNew({"plugin", "PriceScore"}), 2);
  EXPECT_EQ(RunNew({"plugin", "price", "--language", "cpp"}), 2);
  EXPECT_EQ(RunNew({"pod", "PriceScore", "--language", "cpp"}), 2);
  EXPECT_EQ(RunPlugin({"install", "a.so"}), 2);
  EXPECT_EQ(RunPlugin({"install", "--into", "d"}), 2);
  EXPECT_EQ(RunPlugin({"install", "a.so", "--into", "d", "--timeout", "soon"}), 2);
  EXPECT_EQ(RunPlugin({"install", "a.so", "--into", "d", "--server", "127.0.0.1:1"}), 1);
}

}  // namespace
}  // namespace outboard::plugin_command
