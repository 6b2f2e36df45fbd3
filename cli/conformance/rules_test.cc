#include "cli/conformance/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace outboard::conformance {
namespace {

const std::vector<Rule>& AllRules() {
  static const auto* const kRules = new std::vector<Rule>{
#define OUTBOARD_CONFORMANCE_RULE(name, file, field, text) name,
      OUTBOARD_CONFORMANCE_RULES(OUTBOARD_CONFORMANCE_RULE)
#undef OUTBOARD_CONFORMANCE_RULE
  };
  return *kRules;
}

// All comments of a file as one line.
std::string CommentsOf(const std::string& file) {
  const std::string folder = file == "handshake.proto" ? "handshake/v1/" : "v1beta1/";
  std::ifstream in(absl::StrCat("proto/outboard/", folder, file));
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_TRUE(in) << file;
  std::vector<std::string> words;
  for (absl::string_view line : absl::StrSplit(text.str(), '\n')) {
    for (absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
      if (word != "//") words.emplace_back(word);
    }
  }
  return absl::StrJoin(words, " ");
}

TEST(RulesTest, AreQuotedLiterallyFromTheContract) {
  for (const Rule& rule : AllRules())
    EXPECT_THAT(CommentsOf(rule.file), ::testing::HasSubstr(rule.text)) << rule.file;
}

TEST(RulesTest, AreQuotedWithTheField) {
  EXPECT_EQ(Wrong(kScoreRange, "Fit gives 101").message(),
            "PluginScores.scores: Fit gives 101 (score.proto: \"the normalised score, 0..100\")");
}

TEST(RulesTest, AMalformedAnswerNamesItsService) {
  EXPECT_EQ(MalformedService(Malformed("ScoreService", Wrong(kScoreRange, ""))), "ScoreService");
  EXPECT_EQ(MalformedService(Wrong(kScoreRange, "")), "");
  EXPECT_TRUE(Malformed("ScoreService", absl::OkStatus()).ok());
}

}  // namespace
}  // namespace outboard::conformance
