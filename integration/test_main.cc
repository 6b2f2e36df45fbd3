// The main of test programs: PROGRAM [--gtest_…] [FILE…]. Runs all cases, or those of the source
// files that are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace {

// The compiler was given a path from the build folder or an absolute one; FILE is named from the
// repository root.
bool IsFile(std::string_view path, std::string_view file) {
  if (!path.ends_with(file)) return false;
  path.remove_suffix(file.size());
  return path.empty() || path.ends_with('/');
}

// A filter for the cases of the files. Empty if a file has none, or shares a case's name with
// another file.
std::string FilterFor(const std::vector<std::string>& files) {
  std::string filter;
  std::map<std::string, int> cases_of;
  for (const std::string& file : files) cases_of[file] = 0;
  std::map<std::string, std::string_view> file_of;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      const std::string name = std::string(suite.name()) + "." + test.name();
      const auto [other, is_new] = file_of.emplace(name, test.file());
      if (!is_new && other->second != test.file()) {
        std::cerr << name << " is in " << other->second << " and in " << test.file() << "\n";
        return "";
      }
      for (const std::string& file : files) {
        if (!IsFile(test.file(), file)) continue;
        ++cases_of[file];
        filter += name + ":";
      }
    }
  }
  for (const auto& [file, cases] : cases_of) {
    if (cases > 0) continue;
    std::cerr << file << " has no cases in this program\n";
    return "";
  }
  return filter;
}

// GTEST_OUTPUT=xml:folder/ names reports by program; tests of one program must not overwrite each
// other's.
void NameReportBy(std::string file) {
  const std::string output = GTEST_FLAG_GET(output);
  if (!output.ends_with('/')) return;
  file.resize(file.rfind('.'));
  GTEST_FLAG_SET(output, output + file + ".xml");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') files.push_back(argv[i]);
  }
  // GoogleTest reads where to report only once.
  if (files.size() == 1) NameReportBy(files[0]);
  testing::InitGoogleMock(&argc, argv);
  // A death test starts this program again with these arguments and a filter.
  if (!files.empty() && GTEST_FLAG_GET(filter) == "*") {
    const std::string filter = FilterFor(files);
    if (filter.empty()) return 1;
    GTEST_FLAG_SET(filter, filter);
  }
  return RUN_ALL_TESTS();
}
