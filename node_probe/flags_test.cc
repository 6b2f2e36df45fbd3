#include "node_probe/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/config/testing/help_flags.h"

namespace outboard::node_probe {
namespace {

TEST(NodeProbeFlagsTest, HelpListsEveryFlag) {
  Flags flags;
  EXPECT_THAT(MakeFlagTable(&flags).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kHelp)));
}

TEST(NodeProbeFlagsTest, Defaults) {
  const auto flags = ParseFlags({}, "n1");
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->node_name, "n1");
  EXPECT_EQ(flags->nvidia_smi, "nvidia-smi");
  EXPECT_EQ(flags->pod_resources, "/var/lib/kubelet/pod-resources/kubelet.sock");
  EXPECT_EQ(flags->period, absl::Seconds(30));
  EXPECT_FALSE(flags->once);
}

TEST(NodeProbeFlagsTest, ReadsAllFlags) {
  const auto flags =
      ParseFlags({"--node-name=n2", "--nvidia-smi=/bin/n", "--pod-resources=/s", "--period=1m30s",
                  "--command-timeout=5s", "--once", "--kubeconfig=k", "--service-account", "/a"},
                 "n1");
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->node_name, "n2");
  EXPECT_EQ(flags->nvidia_smi, "/bin/n");
  EXPECT_EQ(flags->pod_resources, "/s");
  EXPECT_EQ(flags->period, absl::Seconds(90));
  EXPECT_EQ(flags->command_timeout, absl::Seconds(5));
  EXPECT_TRUE(flags->once);
  EXPECT_EQ(flags->kubeconfig, "k");
  EXPECT_EQ(flags->service_account, "/a");
  EXPECT_EQ(ParseFlags({"--pod-resources=none"}, "n1")->pod_resources, "");
  EXPECT_TRUE(ParseFlags({"--dry-run"}, "")->dry_run) << "needs no name";
}

TEST(NodeProbeFlagsTest, ErrorsNameTheFlag) {
  const auto error = [](const std::vector<std::string>& arguments, const std::string& node = "n1") {
    return std::string(ParseFlags(arguments, node).status().message());
  };
  EXPECT_EQ(error({}, ""), "--node-name NAME is required");
  EXPECT_EQ(error({"--period=0s"}), "--period must be at least 1s");
  EXPECT_EQ(error({"--command-timeout=0s"}), "--command-timeout must be above 0");
  EXPECT_EQ(error({"--nvidia-smi="}), "--nvidia-smi must not be empty");
  EXPECT_EQ(error({"--onec"}), "unknown flag --onec; did you mean --once?");
  EXPECT_EQ(error({"topology.txt"}), "unexpected argument \"topology.txt\"");
  EXPECT_THAT(error({}, "../pods"), ::testing::StartsWith("--node-name "));
  EXPECT_THAT(error({"--node-name=A"}), ::testing::StartsWith("--node-name "));
}

}  // namespace
}  // namespace outboard::node_probe
