// The reader against a server that answers as the test sets.
#include "plugin_host/sdk/prometheus/periodic_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plugin_host/sdk/prometheus/testing/fake_prometheus.h"

namespace outboard::prometheus::periodic_reader_test {

using testing::FakePrometheus;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Ok;
using testing::ReadCounts;
using testing::SampleJson;
using testing::SamplesAnswer;

std::string One(const std::string& value) {
  return SamplesAnswer(SampleJson(R"("node":"n1")", value));
}

class PeriodicReaderTest : public ::testing::Test {
 protected:
  PeriodicReaderTest() {
    options_.server.address = prometheus_.address();
    options_.server.timeout = absl::Milliseconds(300);
    options_.query = "sum by (node) (x)";
    options_.period = absl::Milliseconds(20);
  }
  void Start() {
    ReportOptions report;
    report.metric = "reads_total";
    report.label_values = {"first label"};
    reader_ = std::make_unique<PeriodicReader>(
        options_, report, &metrics_, [this](absl::Time asked, std::vector<Sample> samples) {
          absl::MutexLock lock(&mutex_);
          asked_ = asked;
          latest_ = std::move(samples);
          return latest_->empty() ? absl::NotFoundError("none") : absl::OkStatus();
        });
  }
  std::optional<std::vector<Sample>> Latest() {
    absl::MutexLock lock(&mutex_);
    return latest_;
  }
  std::string Value() {
    const auto latest = Latest();
    return !latest || latest->empty() ? "" : latest->at(0).value;
  }

  FakePrometheus prometheus_;
  ReadCounts metrics_;
  ReadOptions options_;
  absl::Mutex mutex_;
  absl::Time asked_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::vector<Sample>> latest_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PeriodicReader> reader_;
};

TEST_F(PeriodicReaderTest, AsksAndHandsOver) {
  prometheus_.Say(One("0.25"));
  const absl::Time before = absl::Now();
  Start();
  metrics_.Await("ok", 2);
  EXPECT_EQ(Value(), "0.25");
  EXPECT_EQ(Latest()->at(0).Label("node"), "n1");
  {
    absl::MutexLock lock(&mutex_);
    EXPECT_GE(asked_, before);
    EXPECT_LE(asked_, absl::Now());
  }
  const std::string request = prometheus_.AwaitRequests(1);
  EXPECT_THAT(request, HasSubstr("POST /api/v1/query HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("timeout=1s&query=sum%20by%20%28node%29%20%28x%29"));
  EXPECT_THAT(request, Not(HasSubstr("Authorization")));
  EXPECT_THAT(request, Not(HasSubstr("lookback_delta")));
}

TEST_F(PeriodicReaderTest, TheLimitOfAgesIsSent) {
  prometheus_.Say(One("1"));
  options_.lookback = absl::Seconds(90);
  Start();
  EXPECT_THAT(prometheus_.AwaitRequests(1), HasSubstr("&lookback_delta=90000ms"));
}

// After each kind of failure the last samples stay, and a later answer replaces them.
TEST_F(PeriodicReaderTest, FailuresAreCountedAndLeaveWhatIsKnown) {
  prometheus_.Say(One("0.25"));
  Start();
  metrics_.Await("ok", 1);
  const std::string whole = One("0.5");
  const struct {
    std::string answer;
    const char* result;
  } failures[] = {
      {"", "timeout"},
      {"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", "status"},
      {"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n", "status"},
      {whole.substr(0, whole.size() - 20), "unreachable"},
      {whole.substr(0, 9), "unreachable"},
      {"garbage\r\n\r\n", "unreachable"},
      {Ok("<html>please log in</html>"), "malformed"},
      {Ok(std::string(1000000, '[')), "malformed"},
      {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 53\r\n\r\n"
       R"({"status":"error","errorType":"x","error":"too many"})",
       "error"},
  };
  std::map<std::string, int> seen;
  for (const auto& [answer, result] : failures) {
    prometheus_.Say(answer);
    // The first may still have the earlier answer.
    metrics_.Await(result, seen[result] + 2);
    EXPECT_EQ(Value(), "0.25") << result;
    prometheus_.Say(One("0.25"));
    prometheus_.AwaitRequests(2);
    for (const char* name : {"timeout", "status", "unreachable", "malformed", "error"})
      seen[name] = metrics_.count(name);
  }
  prometheus_.Say(whole);
  prometheus_.AwaitRequests(2);
  const int ok = metrics_.count("ok");
  metrics_.Await("ok", ok + 1);
  EXPECT_EQ(Value(), "0.5");
}

TEST_F(PeriodicReaderTest, AnAnswerWithoutEndIsCutOff) {
  std::string body = Ok("[");
  body.replace(body.find("Length: 1"), 9, "Length: 9999999999");
  body += std::string(Client::kMaxAnswerBytes + 1000000, ' ');
  prometheus_.Say(std::move(body));
  options_.server.timeout = absl::Seconds(20);
  Start();
  metrics_.Await("too_large", 1);
  EXPECT_EQ(Latest(), std::nullopt);
}

TEST_F(PeriodicReaderTest, AnUnreachableServerIsReported) {
  options_.server.address = "http://127.0.0.1:1";
  Start();
  metrics_.Await("unreachable", 2);
  EXPECT_EQ(Latest(), std::nullopt);
}

// Removing a profile must not wait for Prometheus.
TEST_F(PeriodicReaderTest, EndsAtOnceWhilePrometheusHangs) {
  prometheus_.Say("");
  options_.server.timeout = absl::Seconds(60);
  Start();
  prometheus_.AwaitFirstRequest();  // It may have arrived already.
  const absl::Time before = absl::Now();
  reader_ = nullptr;
  EXPECT_LT(absl::Now() - before, absl::Seconds(2));
  // And while it waits for its next period.
  prometheus_.Say(One("0.25"));
  options_.period = absl::Hours(1);
  Start();
  metrics_.Await("ok", 1);
  const absl::Time again = absl::Now();
  reader_ = nullptr;
  EXPECT_LT(absl::Now() - again, absl::Seconds(2));
}

TEST_F(PeriodicReaderTest, AnAnswerOfNoUseIsCounted) {
  prometheus_.Say(SamplesAnswer(""));
  Start();
  metrics_.Await("no_samples", 1);
  EXPECT_EQ(metrics_.count("ok"), 0);
  EXPECT_TRUE(Latest()->empty());
}

// The arguments forbid a token over http; the client itself sends it.
TEST_F(PeriodicReaderTest, TokensAreReadForEachRequest) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/token-", getpid());
  options_.server.bearer_token_file = file;
  prometheus_.Say(One("0.25"));
  Start();
  metrics_.Await("token", 1);  // The file does not exist.
  ASSERT_EQ(mkdir(file.c_str(), 0700), 0);
  metrics_.Await("token", metrics_.count("token") + 2);  // It is a directory.
  ASSERT_EQ(rmdir(file.c_str()), 0);
  std::ofstream(file) << "first\n";
  EXPECT_THAT(prometheus_.AwaitRequests(1), HasSubstr("Authorization: Bearer first\r\n"));
  std::ofstream(file) << "second";
  prometheus_.AwaitRequests(1);
  EXPECT_THAT(prometheus_.AwaitRequests(1), HasSubstr("Authorization: Bearer second\r\n"));
  const int refused = metrics_.count("token");
  std::ofstream(file) << "two\r\nX-Header: lines";
  metrics_.Await("token", refused + 1);
  unlink(file.c_str());
}

}  // namespace outboard::prometheus::periodic_reader_test
