#include "cli/conformance/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "cli/conformance/mutation.h"
#include "cli/conformance/report.h"
#include "cli/conformance/rules.h"
#include "outboard/v1beta1/filter.pb.h"
#include "shim/config/testing/help_flags.h"

namespace outboard::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(CommandLineTest, ReadsAllFlags) {
  const auto line =
      ParseCommandLine({"--host", "unix:/run/h.sock", "--plugin", "A", "--args={\"a\": 1}",
                        "--plugin=B", "--node-label", "price=10=ten", "--only", "Cycle*", "--junit",
                        "out.xml", "--seed", "7", "--nodes", "9"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->options.endpoint.address, "unix:/run/h.sock");
  EXPECT_FALSE(line->options.endpoint.tls.has_value());
  EXPECT_THAT(line->options.plugins, ElementsAre("A", "B"));
  EXPECT_THAT(line->options.args, ElementsAre(Pair("A", "{\"a\": 1}")));
  EXPECT_THAT(line->options.node_labels, ElementsAre(Pair("price", "10=ten")));
  EXPECT_EQ(line->options.only, "Cycle*");
  EXPECT_EQ(line->junit, "out.xml");
  EXPECT_EQ(line->options.seed, 7u);
  EXPECT_EQ(line->options.nodes, 9);
}

TEST(CommandLineTest, HelpListsEveryFlag) {
  CommandLine line;
  EXPECT_THAT(ConformanceFlags(&line).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kConformanceHelp)));
}

TEST(CommandLineTest, ReportsTheFault) {
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(ParseCommandLine(arguments).status().message());
  };
  EXPECT_THAT(error({}), HasSubstr("--host is required"));
  EXPECT_THAT(error({"--host", "unix:h", "--tls-ca", "f"}),
              HasSubstr("are for --host HOST:PORT only"));
  EXPECT_THAT(error({"--host", "127.0.0.1:1", "--tls-ca", "f"}), HasSubstr("mutual TLS only"));
  EXPECT_THAT(error({"--host"}), HasSubstr("needs a value"));
  EXPECT_THAT(error({"--host", "unix:h", "--args", "{}"}),
              HasSubstr("--args must come after the --plugin"));
  EXPECT_THAT(error({"--host", "unix:h", "--nodes", "0"}), HasSubstr("--nodes"));
  EXPECT_THAT(error({"--host", "unix:h", "--node-label", "=x"}), HasSubstr("KEY=VALUE"));
  EXPECT_THAT(error({"host"}), HasSubstr("unexpected argument \"host\""));
}

TEST(CasesTest, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Case& one : AllCases()) {
    EXPECT_TRUE(names.insert(absl::StrCat(one.service, "/", one.name)).second) << one.name;
    EXPECT_NE(std::string(one.what), "");
  }
  EXPECT_TRUE(Matches("CycleService/*", "CycleService/in-order"));
  EXPECT_FALSE(Matches("CycleService/*", "ScoreService/again"));
}

TEST(ReportTest, PrintsTextAndJUnit) {
  const std::vector<Result> results = {
      {"ScoreService", "well-formed", Result::Outcome::kFailed, "Fit gives <101> & \"more\"\x01",
       absl::Milliseconds(1500)},
      {"ScoreService", "again", Result::Outcome::kPassed, "", absl::Milliseconds(2)},
      {"CycleService", "errors", Result::Outcome::kSkipped, "without the capability", {}}};
  EXPECT_EQ(Summary(results), "1 passed, 1 failed, 1 skipped");
  EXPECT_THAT(TableLine(results[0]), HasSubstr("FAILED"));
  EXPECT_THAT(TableLine(results[0]), HasSubstr("\n    Fit gives <101> & \"more\" \n"));
  const std::string xml = JUnit(results, "unix:h", 3);
  EXPECT_THAT(xml,
              HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"1.502\""));
  EXPECT_THAT(xml,
              HasSubstr("<failure message=\"Fit gives &lt;101&gt; &amp; &quot;more&quot; \"/>"));
  EXPECT_THAT(xml, HasSubstr("name=\"again\" time=\"0.002\"/>"));
  EXPECT_THAT(xml, HasSubstr("<skipped message="));
}

TEST(MutationTest, IsTheSameForTheSameSeedAndCanBeSent) {
  v1beta1::FilterRequest good;
  good.mutable_header()->set_session_id("caf\xc3\xa9");
  good.mutable_search()->mutable_nodes()->add_slots(1);
  good.add_inline_nodes()->mutable_node()->set_name("node");
  Random one(5);
  Random two(5);
  int changed = 0;
  for (int i = 0; i < 2000; ++i) {
    v1beta1::FilterRequest a = good;
    v1beta1::FilterRequest b = good;
    Mutate(&one, &a);
    Mutate(&two, &b);
    ASSERT_EQ(a.SerializeAsString(), b.SerializeAsString());
    // The receiver can parse it.
    v1beta1::FilterRequest read;
    ASSERT_TRUE(read.ParseFromString(a.SerializeAsString())) << a.ShortDebugString();
    if (a.SerializeAsString() != good.SerializeAsString()) ++changed;
  }
  EXPECT_GT(changed, 1000);
}

}  // namespace
}  // namespace outboard::conformance
