// Every mistake in testdata/mistakes.txt gets its message there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "shim/config/config.h"
#include "shim/config/testing/catalog.h"

namespace outboard::config {
namespace {

using ::testing::MatchesRegex;

constexpr char kFile[] = "shim/config/testdata/mistakes.txt";

struct Mistake {
  std::string what;
  std::string text;
  std::string messages;
};

// The lines before the first case go to `head`.
std::vector<Mistake> ReadMistakes(std::string* head) {
  std::stringstream text;
  text << std::ifstream(kFile).rdbuf();
  std::vector<Mistake> mistakes;
  std::string* out = head;
  for (absl::string_view line : absl::StrSplit(text.str(), '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "== ")) {
      mistakes.push_back({std::string(line.substr(3)), "", ""});
      out = &mistakes.back().text;
    } else if (line == "--") {
      out = &mistakes.back().messages;
    } else {
      absl::StrAppend(out, line, "\n");
    }
  }
  return mistakes;
}

std::string MessagesOf(const std::string& text) {
  const absl::StatusOr<Config> config = ParseConfig(text, "f.yaml");
  if (!config.ok()) return absl::StrCat(config.status().message(), "\n");
  const absl::StatusOr<Profiles> profiles = ResolveProfiles(*config, testing::Catalog());
  if (!profiles.ok()) return absl::StrCat(profiles.status().message(), "\n");
  std::string messages;
  for (const auto& warnings : {config->warnings, profiles->warnings}) {
    for (const std::string& warning : warnings)
      absl::StrAppend(&messages, "warning: ", warning, "\n");
  }
  return messages;
}

TEST(ConfigMistakes, EachHasItsMessage) {
  std::string head;
  const std::vector<Mistake> mistakes = ReadMistakes(&head);
  EXPECT_GE(mistakes.size(), 40u);
  std::string text = head;
  for (const Mistake& mistake : mistakes) {
    const std::string messages = MessagesOf(mistake.text);
    EXPECT_EQ(messages, mistake.messages) << mistake.what;
    absl::StrAppend(&text, "== ", mistake.what, "\n", mistake.text, "--\n", messages);
  }
  if (getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(kFile) << text;
}

TEST(ConfigMistakes, NoneIsSilentOrWithoutItsPlace) {
  std::string head;
  for (const Mistake& mistake : ReadMistakes(&head)) {
    const std::vector<std::string> lines =
        absl::StrSplit(MessagesOf(mistake.text), '\n', absl::SkipEmpty());
    EXPECT_FALSE(lines.empty()) << mistake.what;
    for (const std::string& line : lines) {
      EXPECT_THAT(line, MatchesRegex("(warning: )?f\\.yaml:[0-9]+:[0-9]+: .*")) << mistake.what;
    }
  }
}

}  // namespace
}  // namespace outboard::config
