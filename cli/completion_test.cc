#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace outboard::cli {
namespace {

namespace fs = std::filesystem;

std::vector<CompletedCommand> Commands() {
  return {
      {"queue",
       "Which pods wait: and why?",
       {},
       {{{"--server"}, true, {}},
        {{"-o", "--output"}, true, {"table", "json"}},
        {{"--all"}, false, {}}}},
      {"new", "Start a plugin's folder", {"plugin"}, {{{"--language"}, true, {"cpp", "python"}}}}};
}

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest()
      : folder_(fs::path(::testing::TempDir()) / absl::StrCat("completion-", getpid())) {
    fs::create_directory(folder_);
    std::ofstream(folder_ / "script") << CompletionScript("bash", Commands());
    std::ofstream(folder_ / "pods.yaml");
  }
  ~CompletionTest() override { fs::remove_all(folder_); }

  // The output of `shell`, which reads `script` from its standard input.
  std::string Run(const std::string& shell, const std::string& script) {
    std::ofstream(folder_ / "test") << script;
    FILE* const pipe =
        popen(absl::StrCat("cd ", folder_.string(), " && ", shell, " test 2>&1").c_str(), "r");
    std::string output;
    char buffer[256];
    while (fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
    EXPECT_EQ(pclose(pipe), 0) << output;
    return output;
  }

  // What bash proposes after these words, of which the last is incomplete.
  std::string Proposed(const std::string& words) {
    return Run("bash", absl::StrCat("set -eu; source ./script; COMP_WORDS=(", words,
                                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _outboard; "
                                    "echo \"${COMPREPLY[*]:-}\""));
  }

  const fs::path folder_;
};

TEST_F(CompletionTest, BashCompletesCommandsFlagsAndValues) {
  EXPECT_EQ(Proposed("outboard ''"), "queue new --help --version\n");
  EXPECT_EQ(Proposed("outboard qu"), "queue\n");
  EXPECT_EQ(Proposed("outboard queue --"), "--server --output --all\n");
  EXPECT_EQ(Proposed("outboard queue --al"), "--all\n");
  EXPECT_EQ(Proposed("outboard queue -o ''"), "table json\n");
  EXPECT_EQ(Proposed("outboard queue --output = j"), "json\n");
  EXPECT_EQ(Proposed("outboard queue --output ="), "table json\n");
  EXPECT_EQ(Proposed("outboard new pl"), "plugin\n");
  EXPECT_EQ(Proposed("outboard new plugin Name --language p"), "python\n");
  // Empty: bash completes file names.
  EXPECT_EQ(Proposed("outboard queue --server ''"), "\n");
  EXPECT_EQ(Proposed("outboard queue p"), "\n");
  EXPECT_EQ(Proposed("outboard other --"), "\n");
}

TEST_F(CompletionTest, BashUsesTheScriptForTheProgram) {
  EXPECT_EQ(Run("bash", "source ./script; complete -p outboard"),
            "complete -o default -F _outboard outboard\n");
}

TEST_F(CompletionTest, ZshAndFishReadTheirScripts) {
  const std::string zsh = CompletionScript("zsh", Commands());
  EXPECT_THAT(zsh, ::testing::HasSubstr("    'queue:Which pods wait\\: and why?'\n"
                                        "    'new:Start a plugin'\\''s folder'\n"));
  EXPECT_THAT(zsh, ::testing::HasSubstr("    queue)\n"
                                        "      _arguments \\\n"
                                        "        '*--server=:value:_files' \\\n"
                                        "        '*-o:value:(table json)' \\\n"
                                        "        '*--output=:value:(table json)' \\\n"
                                        "        '*--all' \\\n"
                                        "        '*:file:_files'\n"
                                        "      ;;\n"));
  const std::string fish = CompletionScript("fish", Commands());
  EXPECT_THAT(
      fish,
      ::testing::HasSubstr(
          "complete -c outboard -n __fish_use_subcommand -a new -d 'Start a plugin'\\''s folder'\n"
          "complete -c outboard -n '__fish_seen_subcommand_from new' -a 'plugin'\n"
          "complete -c outboard -n '__fish_seen_subcommand_from new' -l language -x -a 'cpp "
          "python'\n"));
  for (const auto& [shell, script] : {std::pair("zsh", zsh), std::pair("fish", fish)}) {
    if (system(absl::StrCat("command -v ", shell, " >/dev/null").c_str()) != 0) continue;
    EXPECT_EQ(Run(absl::StrCat(shell, " -n"), script), "");
  }
}

}  // namespace
}  // namespace outboard::cli
