// Every mistake in testdata/mistakes.txt gets its message there.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/manifests/object_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outboard::manifests {
namespace {

using ::testing::MatchesRegex;

constexpr char kFile[] = "cli/manifests/testdata/mistakes.txt";

struct Mistake {
  std::string what;
  std::string manifest;
  std::string messages;
};

// The lines before the first case go to `head`.
std::vector<Mistake> ReadMistakes(std::string* head) {
  std::ifstream stream(kFile);
  std::stringstream text;
  text << stream.rdbuf();
  std::vector<Mistake> mistakes;
  std::string* out = head;
  for (absl::string_view line : absl::StrSplit(text.str(), '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "== ")) {
      mistakes.push_back({std::string(line.substr(3)), "", ""});
      out = &mistakes.back().manifest;
    } else if (line == "--") {
      out = &mistakes.back().messages;
    } else {
      absl::StrAppend(out, line, "\n");
    }
  }
  return mistakes;
}

std::string MessagesOf(const std::string& manifest) {
  ManifestReader reader(/*strict=*/false);
  reader.Read("f.yaml", manifest, /*to_schedule=*/true);
  const Manifests manifests = reader.Finish();
  std::string messages;
  for (const std::string& error : manifests.errors) absl::StrAppend(&messages, error, "\n");
  for (const std::string& warning : manifests.warnings)
    absl::StrAppend(&messages, "warning: ", warning, "\n");
  return messages;
}

TEST(Mistakes, EachHasItsMessage) {
  std::string head;
  std::vector<Mistake> mistakes = ReadMistakes(&head);
  EXPECT_GE(mistakes.size(), 50u);
  std::string text = head;
  for (const Mistake& mistake : mistakes) {
    const std::string messages = MessagesOf(mistake.manifest);
    EXPECT_EQ(messages, mistake.messages) << mistake.what;
    absl::StrAppend(&text, "== ", mistake.what, "\n", mistake.manifest, "--\n", messages);
  }
  if (getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(kFile) << text;
}

TEST(Mistakes, NoneIsSilentOrWithoutItsPlace) {
  std::string head;
  for (const Mistake& mistake : ReadMistakes(&head)) {
    const std::vector<std::string> lines =
        absl::StrSplit(MessagesOf(mistake.manifest), '\n', absl::SkipEmpty());
    EXPECT_FALSE(lines.empty()) << mistake.what;
    for (const std::string& line : lines) {
      EXPECT_THAT(line, MatchesRegex("(warning: )?f\\.yaml(:[0-9]+:[0-9]+: |: skipped, ).*"))
          << mistake.what;
    }
  }
}

}  // namespace
}  // namespace outboard::manifests
