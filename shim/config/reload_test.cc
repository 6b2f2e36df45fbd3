#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "shim/config/config.h"
#include "shim/config/profiles.h"

namespace outboard::config::reload_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kScheduler[] =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
constexpr char kShim[] = "---\napiVersion: config.outboard.dev/v1alpha1\nkind: ShimConfiguration\n";

Config Parse(const std::string& scheduler, const std::string& shim) {
  absl::StatusOr<Config> config =
      ParseConfig(absl::StrCat(kScheduler, scheduler, "\n", kShim, shim, "\n"), "f.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

TEST(KeepUntilRestart, TakesWhatReloadsAndKeepsTheRest) {
  const Config running = Parse("podMaxBackoffSeconds: 20", "servingAddress: 127.0.0.1:1");
  Config next = Parse("percentageOfNodesToScore: 7\nleaderElection: {resourceName: other}",
                      "servingAddress: 127.0.0.1:2\nverbosity: 3\n"
                      "customResources: [{resource: as.v1.example.com}]");
  const auto waiting = KeepUntilRestart(running, &next);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_THAT(*waiting, ElementsAre("leaderElection", "podMaxBackoffSeconds", "servingAddress"));
  EXPECT_EQ(next.scheduler.percentage_of_nodes_to_score, 7);
  EXPECT_EQ(next.shim.verbosity, 3);
  EXPECT_EQ(next.shim.custom_resources.size(), 1u);
  EXPECT_EQ(next.scheduler.leader_election, running.scheduler.leader_election);
  EXPECT_EQ(next.scheduler.pod_max_backoff, absl::Seconds(20));
  EXPECT_EQ(next.shim.serving_address, "127.0.0.1:1");
}

TEST(KeepUntilRestart, NothingWaitsIfNothingDiffers) {
  const Config running = Parse("", "verbosity: 1");
  Config next = Parse("", "verbosity: 2");
  const auto waiting = KeepUntilRestart(running, &next);
  ASSERT_TRUE(waiting.ok()) << waiting.status();
  EXPECT_THAT(*waiting, IsEmpty());
}

TEST(KeepUntilRestart, TheRunningExtenderKeepsItsProfile) {
  const std::string extender = "extender: {address: \"127.0.0.1:1\", profile: a}";
  const Config running = Parse("profiles: [{schedulerName: a}]", extender);
  Config next = Parse("profiles: [{schedulerName: b}]", "");
  EXPECT_THAT(std::string(KeepUntilRestart(running, &next).status().message()),
              HasSubstr("f.yaml: profiles: no profile has the schedulerName \"a\""));
}

TEST(Config, HasTheHashOfItsText) {
  EXPECT_EQ(ParseConfig("", "f")->sha256,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_NE(ParseConfig("# a", "f")->sha256, ParseConfig("# b", "f")->sha256);
}

}  // namespace
}  // namespace outboard::config::reload_test
