#include "shim/reload/last_good_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "shim/config/profiles.h"

namespace outboard::reload::last_good_config_test {
namespace {

using ::testing::HasSubstr;

std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class LastGoodConfigTest : public ::testing::Test {
 protected:
  LastGoodConfigTest() { std::filesystem::create_directories(directory_); }
  ~LastGoodConfigTest() override { std::filesystem::remove_all(directory_); }
  static config::Config Parse(const std::string& fields) {
    auto config = config::ParseConfig(
        absl::StrCat("apiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\n", fields),
        "f.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return *std::move(config);
  }

  const std::string directory_ =
      absl::StrCat(::testing::TempDir(), "outboard-last-good-", getpid());
  const std::string path_ = directory_ + "/kept.yaml";
};

TEST_F(LastGoodConfigTest, KeepsAConfigurationThatLoadsAsTheSame) {
  const config::Config config =
      Parse("verbosity: 3\ncustomResources: [{resource: as.v1.example.com, verbs: [patch]}]\n");
  {
    LastGoodConfig kept(path_);
    EXPECT_TRUE(kept.Save(config));
  }
  const auto loaded = config::LoadConfigFile(path_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(config::EffectiveConfigYaml(*loaded, nullptr),
            config::EffectiveConfigYaml(config, nullptr));
  EXPECT_THAT(Read(path_), HasSubstr(absl::StrCat("f.yaml (sha256:", config.sha256, ")")));
  struct stat status;
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(LastGoodConfigTest, AFailedWriteLeavesTheFile) {
  ASSERT_TRUE(ReplaceFile(path_, "old").ok());
  // The new text cannot be written beside it.
  std::filesystem::create_directories(path_ + ".new");
  EXPECT_THAT(std::string(ReplaceFile(path_, "new").message()), HasSubstr("cannot be written"));
  EXPECT_EQ(Read(path_), "old");
  std::filesystem::remove_all(path_ + ".new");
  EXPECT_TRUE(ReplaceFile(path_, "new").ok());
  EXPECT_EQ(Read(path_), "new");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(LastGoodConfigTest, WithoutAPathNothingIsKept) {
  LastGoodConfig kept("");
  EXPECT_TRUE(kept.Save(Parse("")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

}  // namespace
}  // namespace outboard::reload::last_good_config_test
