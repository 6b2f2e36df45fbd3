// The list of cases is complete: a merge that loses a line of it must not lose cases. (The compiler
// warns of a case that its own file does not list.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace outboard::conformance::case_list_test {
namespace {

constexpr char kFolder[] = "cli/conformance";
constexpr char kAll[] = "AllCases";

std::string TextOf(const std::filesystem::path& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The first groups of all matches.
std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

// Functions that return cases, of all source files.
std::set<std::string> DefinedLists() {
  std::set<std::string> defined;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    if (file.path().extension() != ".cc") continue;
    defined.merge(
        Matches(TextOf(file.path()), R"(\nstd::vector<Case> (\w+Cases)\((?:void)?\) \{)"));
  }
  defined.erase(kAll);
  return defined;
}

TEST(CaseListTest, AllCasesHasEachFilesCases) {
  const std::string kit = TextOf(std::filesystem::path(kFolder) / "kit.cc");
  const size_t begin = kit.find("std::vector<Case> AllCases() {");
  ASSERT_NE(begin, std::string::npos);
  const std::string body = kit.substr(begin, kit.find("\n}\n", begin) - begin);
  std::set<std::string> listed = Matches(body, R"([{ ](\w+Cases)[,}])");
  EXPECT_GT(listed.size(), 10u);
  EXPECT_EQ(listed, DefinedLists());
}

}  // namespace
}  // namespace outboard::conformance::case_list_test
