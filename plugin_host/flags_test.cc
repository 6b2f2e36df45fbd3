#include "plugin_host/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace outboard::plugin_host {
namespace {

TEST(FlagsTest, ReadsBothForms) {
  const auto flags =
      ParseFlags({"--listen", "unix:/x", "--v=4", "--drain-timeout", "3s", "--socket-mode=0660"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->listen, "unix:/x");
  EXPECT_EQ(flags->verbosity, 4);
  EXPECT_EQ(flags->drain_timeout, absl::Seconds(3));
  EXPECT_EQ(flags->socket_mode, 0660u);
  EXPECT_TRUE(flags->metrics_address.empty());
  EXPECT_EQ(ParseFlags({"--listen=unix:/x", "--metrics-address=127.0.0.1:0"})->metrics_address,
            "127.0.0.1:0");
}

TEST(FlagsTest, UnprotectedMetricsNeedAnAddress) {
  EXPECT_FALSE(ParseFlags({"--listen=unix:/x", "--metrics-unprotected"}).ok());
  const auto flags =
      ParseFlags({"--listen=unix:/x", "--metrics-address=0.0.0.0:1", "--metrics-unprotected"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_TRUE(flags->metrics_unprotected);
}

TEST(FlagsTest, TheLimitOfSlowCalls) {
  EXPECT_EQ(ParseFlags({"--listen=unix:/x"})->slow_plugin_call, absl::Milliseconds(50));
  EXPECT_EQ(ParseFlags({"--listen=unix:/x", "--slow-plugin-call=0s"})->slow_plugin_call,
            absl::ZeroDuration());
  for (const char* value : {"-1s", "inf", "50", ""}) {
    EXPECT_FALSE(ParseFlags({"--listen", "unix:/x", "--slow-plugin-call", value}).ok()) << value;
  }
}

TEST(FlagsTest, RefusesTheNetworkWithoutTls) {
  EXPECT_FALSE(ParseFlags({"--listen", "0.0.0.0:443"}).ok());
  EXPECT_FALSE(ParseFlags({"--listen", "0.0.0.0:443", "--tls-cert", "c", "--tls-key", "k"}).ok());
  EXPECT_TRUE(ParseFlags({"--listen", "0.0.0.0:443", "--tls-cert", "c", "--tls-key", "k",
                          "--tls-client-ca", "a"})
                  .ok());
  EXPECT_FALSE(ParseFlags({"--listen", "unix:/x", "--tls-cert", "c"}).ok());
}

TEST(FlagsTest, SomePluginsOrAllButSome) {
  const auto some = ParseFlags({"--listen", "unix:/x", "--plugins", "A,B"});
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ(some->plugins, (std::vector<std::string>{"A", "B"}));
  EXPECT_FALSE(some->all_but);
  const auto others = ParseFlags({"--listen", "unix:/x", "--plugins=-A,-B"});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->plugins, (std::vector<std::string>{"A", "B"}));
  EXPECT_TRUE(others->all_but);
  for (const char* wrong : {"", "A,", "A,-B", "-A,B", "-"}) {
    EXPECT_FALSE(ParseFlags({"--listen", "unix:/x", "--plugins", wrong}).ok()) << wrong;
  }
}

TEST(FlagsTest, ADirectoryOfPluginsNeedsASocketForEachInstance) {
  EXPECT_TRUE(ParseFlags({"--listen", "unix:/x@{instance}.sock", "--plugin-dir", "/d"}).ok());
  EXPECT_FALSE(ParseFlags({"--listen", "unix:/x.sock", "--plugin-dir", "/d"}).ok());
  EXPECT_FALSE(ParseFlags({"--listen", "0.0.0.0:443", "--tls-cert", "c", "--tls-key", "k",
                           "--tls-client-ca", "a", "--plugin-dir", "/d"})
                   .ok());
  EXPECT_TRUE(ParseFlags({"--plugin-dir", "/d", "--install", "a.so"}).ok());
  EXPECT_FALSE(ParseFlags({"--install", "a.so"}).ok());
  EXPECT_FALSE(ParseFlags({"--plugin-dir", "/d", "--install", "a.so", "--remove", "a.so"}).ok());
  EXPECT_TRUE(ParseFlags({"--node-facts", "/f"}).ok());
  EXPECT_EQ(ParseFlags({"--node-facts", "/f", "--price-list", "/p"})->price_list, "/p");
  EXPECT_FALSE(ParseFlags({"--price-list", "/p", "--listen", "unix:/x"}).ok());
  EXPECT_FALSE(ParseFlags({"--node-facts", "/f", "--listen", "unix:/x"}).ok());
}

TEST(FlagsTest, ProbesASocketOnly) {
  const auto probe = ParseFlags({"--probe", "--listen", "unix:/d/main@{instance}.sock"});
  ASSERT_TRUE(probe.ok()) << probe.status();
  EXPECT_TRUE(probe->probe);
  EXPECT_FALSE(ParseFlags({"--probe"}).ok());
  EXPECT_FALSE(ParseFlags({"--probe", "--listen", "127.0.0.1:443"}).ok());
}

TEST(FlagsTest, NamesWhatIsWrong) {
  EXPECT_EQ(ParseFlags({"--lisen=x"}).status().message(),
            "unknown argument --lisen; did you mean --listen?");
  EXPECT_EQ(ParseFlags({"-listen", "x"}).status().message(),
            "unknown argument -listen; did you mean --listen?");
  EXPECT_EQ(ParseFlags({"--kubeconfig"}).status().message(), "unknown argument --kubeconfig");
  EXPECT_EQ(DidYouMean("GPUAwere", {"NodeName", "GPUAware"}), "; did you mean GPUAware?");
  EXPECT_EQ(ParseFlags({"--listen"}).status().message(), "--listen needs a value");
  EXPECT_EQ(ParseFlags({"--v=x"}).status().message(), "--v must be a number, 0 or more, not \"x\"");
  EXPECT_EQ(ParseFlags({"--probe=a"}).status().message(), "--probe takes no value");
  EXPECT_EQ(ParseFlags({"--listen=/a"}).status().message(),
            "--listen must be unix:PATH or HOST:PORT, not \"/a\"; did you mean unix:/a?");
  EXPECT_EQ(ParseFlags({"--listen=unix:"}).status().message(),
            "--listen must be unix:PATH or HOST:PORT, not \"unix:\"");
  EXPECT_FALSE(ParseFlags({}).ok());
}

TEST(FlagsTest, TheLastValueCountsAndAnEmptyOneIsAnError) {
  EXPECT_EQ(ParseFlags({"--listen=unix:/a", "--listen", "unix:/b"})->listen, "unix:/b");
  EXPECT_EQ(ParseFlags({"--listen=", "unix:/b"}).status().message(), "--listen needs a value");
  EXPECT_EQ(ParseFlags({"host"}).status().message(), "unknown argument host");
}

// Flags at the beginning of a line of the help text, up to two spaces.
TEST(FlagsTest, HelpListsEveryFlag) {
  std::set<std::string> listed;
  for (absl::string_view line : absl::StrSplit(kHelp, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::StartsWith(line, "-")) continue;
    for (absl::string_view word :
         absl::StrSplit(line.substr(0, line.find("  ")), absl::ByAnyChar(" ,"))) {
      if (absl::StartsWith(word, "-")) listed.emplace(word);
    }
  }
  EXPECT_THAT(FlagNames(), ::testing::UnorderedElementsAreArray(listed));
}

}  // namespace
}  // namespace outboard::plugin_host
