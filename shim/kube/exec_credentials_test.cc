#include "shim/kube/exec_credentials.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "shim/clock.h"
#include "shim/kube/curl_api_client.h"
#include "shim/kube/testing/fake_api_server.h"

namespace outboard::kube {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);
// A test's plugin that hangs does so for much longer than what must not wait for it.
constexpr absl::Duration kHang = absl::Seconds(60);

// Runs plugins that are scripts. They find their folder in $0.
class ExecCredentialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/exec-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // The script has functions: `answer TOKEN [SECONDS]` prints credentials, with that life if given;
  // `hang`. `$run` is the number of the run.
  ExecCredentialOptions Exec(const std::string& body) {
    options_.command = directory_ + "/plugin.sh";
    std::ofstream(options_.command)
        << "#!/bin/sh\n"
        << "cd \"$(dirname \"$0\")\"\necho run >>runs\nrun=$(wc -l <runs)\n"
        << "answer() {\n"
        << "  expires=\n"
        << "  [ -z \"$2\" ] || expires=\",\\\"expirationTimestamp\\\":\\\"$(date -u -d \"+$2 sec\" "
           "+%Y-%m-%dT%H:%M:%S.%NZ)\\\"\"\n"
        << "  echo \"{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\","
           "\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{\\\"token\\\":\\\"$1\\\"$expires}}"
           "\"\n"
        << "}\n"
        << "hang() { echo $$ >pid; exec sleep 60; }\n"
        << body << "\n";
    chmod(options_.command.c_str(), 0700);
    options_.api_version = "client.authentication.k8s.io/v1";
    options_.retry_period = absl::Milliseconds(100);
    return options_;
  }
  int Runs() const {
    std::ifstream in(directory_ + "/runs");
    return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
  }
  bool AwaitRuns(int count) const {
    return Await([this, count] { return Runs() >= count; });
  }
  static bool Await(const std::function<bool()>& reached) {
    for (const absl::Time end = SteadyNow() + kPatience; !reached();) {
      if (SteadyNow() > end) return false;
      absl::SleepFor(absl::Milliseconds(5));  // poll interval
    }
    return true;
  }
  static std::string TokenOf(CredentialSource& source) {
    auto credentials = source.Get(SteadyNow());
    return credentials.ok() ? (*credentials)->bearer_token : "";
  }
  static std::string ErrorOf(CredentialSource& source) {
    auto credentials = source.Get(SteadyNow());
    return credentials.ok() ? "" : std::string(credentials.status().message());
  }
  // The token, or the error, after the first run.
  static std::string Outcome(CredentialSource& source) {
    EXPECT_TRUE(Await([&source] { return source.Get(SteadyNow()).ok() || !source.Refreshing(); }));
    const std::string token = TokenOf(source);
    return token.empty() ? ErrorOf(source) : token;
  }

  std::string directory_;
  ExecCredentialOptions options_;
};

TEST_F(ExecCredentialsTest, PluginsThatMisbehave) {
  const auto outcome = [this](const std::string& body) {
    return Outcome(*MakeExecCredentials(Exec(body)));
  };
  EXPECT_EQ(outcome("answer good"), "good");
  EXPECT_EQ(outcome("sleep 0.3; answer late"), "late");
  EXPECT_THAT(outcome("exit 7"), HasSubstr("plugin.sh: exit code 7"));
  EXPECT_THAT(outcome("kill -9 $$"), HasSubstr("plugin.sh: ended by signal 9"));
  EXPECT_THAT(outcome("echo garbage"), HasSubstr("plugin.sh: the output is not a JSON object"));
  EXPECT_THAT(outcome("echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v1\"}'"),
              HasSubstr("expected client.authentication.k8s.io/v1 ExecCredential"));
  EXPECT_THAT(outcome("answer t | sed 's/}}/,\"expirationTimestamp\":\"soon\"}}/'"),
              HasSubstr("status.expirationTimestamp"));
  options_.timeout = absl::Milliseconds(200);
  EXPECT_THAT(outcome("hang"), HasSubstr("plugin.sh: the program did not end in time"));
  ExecCredentialOptions missing = Exec("");
  missing.command = directory_ + "/absent";
  missing.install_hint = "install it";
  EXPECT_THAT(Outcome(*MakeExecCredentials(missing)), HasSubstr("install it"));
}

TEST_F(ExecCredentialsTest, NeverWaitsForThePlugin) {
  auto source = MakeExecCredentials(Exec("hang"));
  const absl::Time began = SteadyNow();
  EXPECT_TRUE(source->Refreshing());
  EXPECT_THAT(ErrorOf(*source), HasSubstr("plugin.sh: no answer for 0"));
  ASSERT_TRUE(AwaitRuns(1));
  EXPECT_TRUE(source->Refreshing());
  EXPECT_THAT(ErrorOf(*source), HasSubstr("plugin.sh: no answer for"));
  EXPECT_LT(SteadyNow() - began, kHang / 2);
}

TEST_F(ExecCredentialsTest, EndsAPluginThatRunsWhenTheProcessEnds) {
  auto source = MakeExecCredentials(Exec("hang"));
  (void)source->Get(SteadyNow());
  int pid = 0;
  ASSERT_TRUE(Await([this, &pid] {
    std::ifstream in(directory_ + "/pid");
    return static_cast<bool>(in >> pid);
  }));
  const absl::Time began = SteadyNow();
  source = nullptr;
  EXPECT_LT(SteadyNow() - began, kHang / 2);
  EXPECT_NE(kill(pid, 0), 0);
}

TEST_F(ExecCredentialsTest, RunsOneAtATime) {
  auto source = MakeExecCredentials(Exec("sleep 0.3; answer t"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&source] { EXPECT_TRUE(Await([&source] { return source->Get(SteadyNow()).ok(); })); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Runs(), 1);
}

// The plugin runs again before its credentials expire, so no request ever waits for it.
TEST_F(ExecCredentialsTest, RefreshesBeforeTheExpiry) {
  auto source = MakeExecCredentials(Exec("answer t$run 6"));
  ASSERT_EQ(Outcome(*source), "t1");
  std::string token;
  ASSERT_TRUE(Await([&] {
    token = TokenOf(*source);
    EXPECT_NE(token, "") << ErrorOf(*source);
    return token == "t2" || token.empty();
  }));
  EXPECT_EQ(token, "t2");
}

TEST_F(ExecCredentialsTest, KeepsWhatIsValidWhileThePluginHangs) {
  auto source = MakeExecCredentials(Exec("[ $run = 1 ] && answer t 6 || hang"));
  ASSERT_EQ(Outcome(*source), "t");
  ASSERT_TRUE(AwaitRuns(2));
  EXPECT_EQ(TokenOf(*source), "t");
  EXPECT_TRUE(source->Refreshing());
  // Nothing valid is left.
  EXPECT_TRUE(Await([&source] { return TokenOf(*source).empty(); }));
  EXPECT_THAT(ErrorOf(*source), HasSubstr("plugin.sh: no answer for"));
  EXPECT_THAT(ErrorOf(*source), HasSubstr("its last credentials have expired"));
}

TEST_F(ExecCredentialsTest, KeepsWhatIsValidWhileThePluginFails) {
  auto source =
      MakeExecCredentials(Exec("case $run in 1) answer t ;; 2|3) exit 3 ;; *) answer u ;; esac"));
  ASSERT_EQ(Outcome(*source), "t");
  source->Rejected(*source->Get(SteadyNow()), SteadyNow());
  EXPECT_TRUE(source->Refreshing());
  ASSERT_TRUE(AwaitRuns(3));
  std::string token;
  ASSERT_TRUE(Await([&] { return (token = TokenOf(*source)) != "t"; }));
  EXPECT_EQ(token, "u");
  EXPECT_EQ(Runs(), 4);
}

TEST_F(ExecCredentialsTest, ARejectionOfOlderCredentialsIsIgnored) {
  auto source = MakeExecCredentials(Exec("answer t"));
  ASSERT_EQ(Outcome(*source), "t");
  source->Rejected(std::make_shared<Credentials>(), SteadyNow());
  EXPECT_FALSE(source->Refreshing());
  EXPECT_EQ(Runs(), 1);
}

// A wrong clock must not stop a scheduler whose credentials the API server accepts.
TEST_F(ExecCredentialsTest, UsesCredentialsThatLookExpiredOnArrival) {
  ExecCredentialOptions options = Exec("answer t -3600");
  options.retry_period = absl::Seconds(10);
  EXPECT_EQ(Outcome(*MakeExecCredentials(options)), "t");
}

// The client.

CurlApiClientOptions NoLimit() {
  CurlApiClientOptions options;
  options.qps = -1;
  return options;
}

ApiRequest Get(absl::Duration timeout) {
  ApiRequest request;
  request.path = "/api/v1/pods";
  request.timeout = timeout;
  return request;
}

ClientConfig WithPlugin(const testing::FakeApiServer& server, ExecCredentialOptions options) {
  ClientConfig config = server.Config();
  config.credentials = MakeExecCredentials(std::move(options));
  return config;
}

TEST_F(ExecCredentialsTest, RequestsWaitNoLongerThanTheirTimeout) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("hang")), NoLimit());
  const absl::Time began = SteadyNow();
  const absl::Status status = client.Call(Get(absl::Milliseconds(300))).status();
  EXPECT_LT(SteadyNow() - began, kHang / 4);
  EXPECT_GE(SteadyNow() - began, absl::Milliseconds(300));
  EXPECT_THAT(std::string(status.message()), HasSubstr("plugin.sh: no answer for"));
  EXPECT_EQ(DeliveryOf(status), Delivery::kNotSent);
  EXPECT_TRUE(server.Requests().empty());
}

TEST_F(ExecCredentialsTest, RequestsWaitForALateAnswer) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("sleep 0.3; answer late")), NoLimit());
  auto answer = client.Call(Get(kPatience));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->http_status, 200);
  EXPECT_EQ(server.Requests()[0].headers.at("authorization"), "Bearer late");
}

TEST_F(ExecCredentialsTest, RequestsFailAtOnceIfThePluginFailed) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("exit 7")), NoLimit());
  const absl::Status status = client.Call(Get(kHang)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("plugin.sh: exit code 7"));
}

// A 401, for whatever reason, and a plugin that hangs: the lease goes on.
TEST_F(ExecCredentialsTest, AHangingRefreshDelaysOnlyTheRejectedRequest) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("[ $run = 1 ] && answer t || hang")), NoLimit());
  ASSERT_EQ(client.Call(Get(kPatience))->http_status, 200);
  testing::Fault unauthorized;
  unauthorized.http_status = 401;
  server.Inject(unauthorized);
  absl::Notification ended;
  client.Start(Get(absl::Seconds(2)), [&ended](absl::StatusOr<ApiResponse> answer) {
    EXPECT_EQ(answer->http_status, 401);
    ended.Notify();
  });
  ASSERT_TRUE(AwaitRuns(2));
  const absl::Time began = SteadyNow();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Call(Get(kPatience))->http_status, 200);
  EXPECT_LT(SteadyNow() - began, kHang / 4);
  ended.WaitForNotification();
}

TEST_F(ExecCredentialsTest, ARejectedRequestIsSentAgainWithNewCredentials) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("[ $run = 1 ] || sleep 0.3; answer t$run")),
                       NoLimit());
  testing::Fault unauthorized;
  unauthorized.http_status = 401;
  server.Inject(unauthorized);
  EXPECT_EQ(client.Call(Get(kPatience))->http_status, 200);
  const auto log = server.Requests();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].headers.at("authorization"), "Bearer t1");
  EXPECT_EQ(log[1].headers.at("authorization"), "Bearer t2");
}

class NoSink : public StreamSink {
 public:
  absl::Status OnHeaders(int, absl::string_view, absl::Duration) override {
    return absl::InternalError("there is an answer");
  }
  absl::Status OnData(absl::string_view) override { return absl::OkStatus(); }
};

TEST_F(ExecCredentialsTest, AWatchWaitsForCredentialsAndCanBeCancelled) {
  testing::FakeApiServer server;
  CurlApiClient client(WithPlugin(server, Exec("hang")), NoLimit());
  NoSink sink;
  const absl::Time began = SteadyNow();
  EXPECT_THAT(
      std::string(client.Stream(Get(absl::Milliseconds(300)), sink, CancelToken()).message()),
      HasSubstr("plugin.sh: no answer for"));
  CancelToken cancel;
  std::thread canceller([&cancel] { cancel.Cancel(); });
  EXPECT_EQ(client.Stream(Get(kHang), sink, cancel).code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_LT(SteadyNow() - began, kHang / 4);
}

}  // namespace
}  // namespace outboard::kube
