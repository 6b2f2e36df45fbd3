#include "shim/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shim/config/testing/help_flags.h"

namespace outboard::shim {
namespace {

TEST(FlagsTest, HelpListsEveryFlag) {
  Flags flags;
  EXPECT_THAT(MakeFlagTable(&flags).names(),
              ::testing::UnorderedElementsAreArray(config::HelpFlags(kHelp)));
}

TEST(FlagsTest, ReadsAllFlags) {
  const auto flags =
      ParseFlags({"--config=c", "--kubeconfig", "k", "--service-account", "/s",
                  "--allow-insecure-api-server", "-v", "2", "--last-good-config=/l"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->config, "c");
  EXPECT_EQ(flags->kubeconfig, "k");
  EXPECT_EQ(flags->service_account, "/s");
  EXPECT_TRUE(flags->allow_insecure_api_server);
  EXPECT_EQ(flags->verbosity, 2);
  EXPECT_EQ(flags->last_good_config, "/l");
  EXPECT_EQ(ParseFlags({"--config=c"})->verbosity, -1);
}

TEST(FlagsTest, AProbeNeedsNoConfiguration) {
  const auto flags = ParseFlags({"--probe=https://h:1/livez", "--token-file=t"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->probe, "https://h:1/livez");
  EXPECT_EQ(flags->credentials.token_file, "t");
}

TEST(FlagsTest, ErrorsNameTheFlag) {
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(ParseFlags(arguments).status().message());
  };
  EXPECT_EQ(error({}), "--config FILE is required");
  EXPECT_EQ(error({"--config"}), "--config needs a value");
  EXPECT_EQ(error({"--conf=x"}), "unknown flag --conf; did you mean --config?");
  EXPECT_EQ(error({"--config=c", "--v=11"}), "--v must be a number from 0 to 10, not \"11\"");
  EXPECT_EQ(error({"--config=c", "--last-good-config=c"}),
            "--last-good-config must name another file than --config");
  EXPECT_EQ(error({"--config=c", "d"}), "unexpected argument \"d\"");
}

}  // namespace
}  // namespace outboard::shim
