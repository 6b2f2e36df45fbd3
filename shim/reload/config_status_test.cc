#include "shim/reload/config_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::reload::config_status_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kProblems[] =
    "/etc/c.yaml:12:3: profiles[0].plugins: unknown field; the token is hunter2\n"
    "/etc/c.yaml:14:1: hosts: Required value";

class ConfigStatusTest : public ::testing::Test {
 protected:
  static config::Config Loaded(const std::string& sha256) {
    config::Config config;
    config.file = "/etc/c.yaml";
    config.sha256 = sha256;
    return config;
  }
  void Refuse(const std::string& sha256, const std::string& problems = kProblems) {
    status_.Refused("/etc/c.yaml", sha256, problems, "the old one runs", now_);
  }
  void ExpectMetric(const std::string& line) const {
    EXPECT_THAT(metrics_.Text(), HasSubstr("\n" + line + "\n"));
  }

  absl::Time now_ = absl::FromUnixSeconds(7);
  absl::Time wall_ = absl::FromUnixSeconds(1000);
  metrics::Metrics metrics_{"test"};
  std::vector<bind::ObjectEvent> events_;
  ConfigStatus status_{&metrics_,
                       [this](bind::ObjectEvent event, absl::Time) { events_.push_back(event); },
                       [this] { return wall_; }};
};

TEST_F(ConfigStatusTest, AStartIsASuccessWithoutAnEvent) {
  status_.Started(Loaded("aa"));
  EXPECT_THAT(events_, IsEmpty());
  EXPECT_EQ(status_.Note(), "");
  EXPECT_EQ(status_.Comment(), "");
  ExpectMetric("outboard_config_last_reload_successful 1");
  ExpectMetric("outboard_config_last_reload_success_timestamp_seconds 1000");
  ExpectMetric("outboard_config_info{hash=\"sha256:aa\"} 1");
  ExpectMetric("outboard_config_restart_required 0");
}

TEST_F(ConfigStatusTest, ARefusedFileIsReportedOnce) {
  status_.Started(Loaded("aa"));
  wall_ = absl::FromUnixSeconds(2000);
  Refuse("bb");
  Refuse("bb");
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_EQ(events_[0].type, "Warning");
  EXPECT_EQ(events_[0].reason, "ConfigurationRefused");
  EXPECT_THAT(events_[0].note, HasSubstr("/etc/c.yaml:12:3: profiles[0].plugins: unknown field"));
  EXPECT_THAT(events_[0].note, HasSubstr("the old one runs"));
  ExpectMetric("outboard_config_last_reload_successful 0");
  ExpectMetric("outboard_config_last_reload_success_timestamp_seconds 1000");
  ExpectMetric("outboard_config_info{hash=\"sha256:aa\"} 1");
  EXPECT_TRUE(status_.is_refused());
  // Another file, and the same file for another reason.
  Refuse("cc");
  Refuse("cc", "a host refuses it");
  EXPECT_THAT(events_, SizeIs(3));
}

TEST_F(ConfigStatusTest, ThePublicNoteQuotesNoValues) {
  Refuse("bb");
  EXPECT_EQ(status_.Note(),
            "the file was refused at 1970-01-01T00:16:40Z because of /etc/c.yaml:12:3: "
            "profiles[0].plugins and 1 more; the old one runs");
  EXPECT_EQ(status_.Comment(),
            "# /etc/c.yaml was refused at 1970-01-01T00:16:40Z; the old one runs:\n"
            "#   /etc/c.yaml:12:3: profiles[0].plugins: unknown field; the token is hunter2\n"
            "#   /etc/c.yaml:14:1: hosts: Required value\n");
  Refuse("bb", "secret of a host");
  EXPECT_THAT(status_.Note(), Not(HasSubstr("secret")));
}

TEST_F(ConfigStatusTest, LoadingEndsARefusalAndNamesWhatWaits) {
  status_.Started(Loaded("aa"));
  Refuse("bb");
  wall_ = absl::FromUnixSeconds(3000);
  status_.Loaded(Loaded("cc"), {"leaderElection", "extender"}, now_);
  ASSERT_THAT(events_, SizeIs(2));
  EXPECT_EQ(events_[1].reason, "ConfigurationLoaded");
  EXPECT_EQ(events_[1].note,
            "loaded /etc/c.yaml (sha256:cc); fields that wait for a restart: leaderElection, "
            "extender");
  EXPECT_EQ(status_.Note(), "fields that wait for a restart: leaderElection, extender");
  ExpectMetric("outboard_config_last_reload_successful 1");
  ExpectMetric("outboard_config_last_reload_success_timestamp_seconds 3000");
  ExpectMetric("outboard_config_restart_required 1");
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("sha256:aa")));
  status_.Loaded(Loaded("dd"), {}, now_);
  EXPECT_EQ(events_[2].type, "Normal");
  EXPECT_EQ(status_.Note(), "");
  ExpectMetric("outboard_config_restart_required 0");
  // The same file is refused again: that is news.
  Refuse("bb");
  EXPECT_THAT(events_, SizeIs(4));
}

TEST(PlaceOf, IsFileLineColumnAndPath) {
  EXPECT_EQ(PlaceOf("f", "f:1:2: a.b[0]: bad value \"x: y\""), "f:1:2: a.b[0]");
  EXPECT_EQ(PlaceOf("f", "f:1:2: not a path: x"), "f:1:2");
  EXPECT_EQ(PlaceOf("f", "f: cannot be opened: x"), "");
  EXPECT_EQ(PlaceOf("f", "g:1:2: a: x"), "");
  EXPECT_EQ(PlaceOf("f", ""), "");
}

}  // namespace
}  // namespace outboard::reload::config_status_test
