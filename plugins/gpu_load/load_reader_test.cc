// The reader against a server that answers as the test sets: invalid, late, partial, or not at all.
#include "plugins/gpu_load/load_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::gpu_load {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Ok(const std::string& body) {
  return absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ",
                      body.size(), "\r\n\r\n", body);
}

std::string Samples(const std::string& rows) {
  return Ok(
      absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", rows, "]}}"));
}

std::string HostRows(double use) {
  return absl::StrCat(R"({"metric":{"node":"n1","outboard":"use"},"value":[100,")", use,
                      R"("]},{"metric":{"node":"n1","outboard":"sampled"},"value":[100,"90"]})");
}

std::string XidRow(int code) {
  return absl::StrCat(R"(,{"metric":{"node":"n1","gpu":"3","outboard":"xid"},"value":[100,")", code,
                      R"("]})");
}

// Answers requests one by one with the result of `answer`; then closes the connection, or keeps it
// open if the answer is empty.
class FakePrometheus {
 public:
  FakePrometheus() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~FakePrometheus() {
    stopped_ = true;
    thread_.join();
    for (const int fd : hanging_) close(fd);
    close(fd_);
  }
  const std::string& address() const { return address_; }
  void Say(std::string answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  // Waits for `more` further requests; returns the last.
  std::string AwaitRequests(int more) {
    absl::MutexLock lock(&mutex_);
    return Await(requests_ + more);
  }
  void AwaitFirstRequest() {
    absl::MutexLock lock(&mutex_);
    Await(1);
  }

 private:
  std::string Await(int want) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto there = [&] { return requests_ >= want; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&there), absl::Seconds(20)));
    return last_;
  }

  void Serve() {
    while (!stopped_) {
      pollfd listening = {fd_, POLLIN, 0};
      if (poll(&listening, 1, 20) <= 0) continue;
      const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::string request = ReadRequest(fd);
      absl::MutexLock lock(&mutex_);
      ++requests_;
      last_ = request;
      if (answer_.empty()) {
        hanging_.push_back(fd);
        continue;
      }
      // The client may close the connection early.
      for (size_t sent = 0; sent < answer_.size();) {
        const ssize_t n = send(fd, answer_.data() + sent, answer_.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<size_t>(n);
      }
      close(fd);
    }
  }
  static std::string ReadRequest(int fd) {
    std::string text;
    char buffer[4096];
    while (true) {
      const size_t head = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      size_t body = 0;
      if (head != std::string::npos && length < head &&
          absl::SimpleAtoi(text.substr(length + 16, text.find("\r\n", length) - length - 16),
                           &body) &&
          text.size() >= head + 4 + body)
        return text;
      const ssize_t n = read(fd, buffer, sizeof(buffer));
      if (n <= 0) return text;
      text.append(buffer, static_cast<size_t>(n));
    }
  }

  const int fd_;
  std::string address_;
  std::atomic<bool> stopped_{false};
  absl::Mutex mutex_;
  std::string answer_ ABSL_GUARDED_BY(mutex_);
  std::string last_ ABSL_GUARDED_BY(mutex_);
  int requests_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<int> hanging_;
  std::thread thread_;
};

// Counts readings by result.
class FakeMetrics : public sdk::Metrics {
 public:
  bool enabled() const override { return true; }
  std::shared_ptr<sdk::Counter> NewCounter(absl::string_view,
                                           const std::vector<std::string>& values) override {
    return std::make_shared<Child>(&counts_[values[0]]);
  }
  std::shared_ptr<sdk::Gauge> NewGauge(absl::string_view name,
                                       const std::vector<std::string>& values) override {
    return sdk::NoMetrics()->NewGauge(name, values);
  }
  std::shared_ptr<sdk::Histogram> NewHistogram(absl::string_view name,
                                               const std::vector<std::string>& values) override {
    return sdk::NoMetrics()->NewHistogram(name, values);
  }
  // Waits for this count.
  void Await(const std::string& result, int count) {
    const absl::Time until = absl::Now() + absl::Seconds(20);
    while (counts_[result] < count && absl::Now() < until) std::this_thread::yield();
    EXPECT_GE(counts_[result], count) << result;
  }
  int count(const std::string& result) { return static_cast<int>(counts_[result]); }

 private:
  struct Child : sdk::Counter {
    explicit Child(std::atomic<double>* where) : count(where) {}
    void Add(double amount) override { count->fetch_add(amount); }
    std::atomic<double>* count;
  };
  std::map<std::string, std::atomic<double>> counts_;
};

class LoadReaderTest : public ::testing::Test {
 protected:
  LoadReaderTest() {
    options_.server.address = prometheus_.address();
    options_.server.timeout = absl::Milliseconds(300);
    options_.period = absl::Milliseconds(20);
    options_.veto_codes = {48, 79};
    options_.veto_for = absl::Seconds(30);
  }
  void Start() { reader_ = std::make_unique<LoadReader>(options_, &metrics_); }
  double Use() const { return reader_->Latest() == nullptr ? -1 : reader_->Latest()->hosts[0].use; }

  FakePrometheus prometheus_;
  FakeMetrics metrics_;
  ReaderOptions options_;
  std::unique_ptr<LoadReader> reader_;
};

TEST_F(LoadReaderTest, AsksAndPublishes) {
  prometheus_.Say(Samples(HostRows(0.25)));
  const absl::Time before = absl::Now();
  Start();
  metrics_.Await("ok", 2);
  const auto snapshot = reader_->Latest();
  ASSERT_NE(snapshot, nullptr);
  EXPECT_THAT(snapshot->hosts, ElementsAre(HostLoad{{"n1"}, 0.25, {}, absl::Seconds(10)}));
  EXPECT_GE(snapshot->asked, before);
  EXPECT_LE(snapshot->asked, absl::Now());
  const std::string request = prometheus_.AwaitRequests(1);
  EXPECT_THAT(request, HasSubstr("POST /api/v1/query HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("DCGM_FI_PROF_GR_ENGINE_ACTIVE"));
  EXPECT_THAT(request, HasSubstr("query=label_replace%28avg%20by"));
  EXPECT_THAT(request, Not(HasSubstr("Authorization")));
}

// After each kind of failure the last snapshot stays, and a later answer replaces it.
TEST_F(LoadReaderTest, FailuresAreCountedAndLeaveWhatIsKnown) {
  prometheus_.Say(Samples(HostRows(0.25)));
  Start();
  metrics_.Await("ok", 1);
  const std::string whole = Samples(HostRows(0.5));
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
    EXPECT_EQ(Use(), 0.25) << result;
    prometheus_.Say(Samples(HostRows(0.25)));
    prometheus_.AwaitRequests(2);
    for (const char* name : {"timeout", "status", "unreachable", "malformed", "error"})
      seen[name] = metrics_.count(name);
  }
  prometheus_.Say(whole);
  prometheus_.AwaitRequests(2);
  const int ok = metrics_.count("ok");
  metrics_.Await("ok", ok + 1);
  EXPECT_EQ(Use(), 0.5);
}

TEST_F(LoadReaderTest, AnAnswerWithoutEndIsCutOff) {
  std::string body = Ok("[");
  body.replace(body.find("Length: 1"), 9, "Length: 9999999999");
  body += std::string(PrometheusClient::kMaxAnswerBytes + 1000000, ' ');
  prometheus_.Say(std::move(body));
  options_.server.timeout = absl::Seconds(20);
  Start();
  metrics_.Await("too_large", 1);
  EXPECT_EQ(reader_->Latest(), nullptr);
}

TEST_F(LoadReaderTest, AnUnreachableServerIsReported) {
  options_.server.address = "http://127.0.0.1:1";
  Start();
  metrics_.Await("unreachable", 2);
  EXPECT_EQ(reader_->Latest(), nullptr);
}

// Removing a profile must not wait for Prometheus.
TEST_F(LoadReaderTest, EndsAtOnceWhilePrometheusHangs) {
  prometheus_.Say("");
  options_.server.timeout = absl::Seconds(60);
  Start();
  prometheus_.AwaitFirstRequest();  // It may have arrived already.
  const absl::Time before = absl::Now();
  reader_ = nullptr;
  EXPECT_LT(absl::Now() - before, absl::Seconds(2));
  // And while it waits for its next period.
  prometheus_.Say(Samples(HostRows(0.25)));
  options_.period = absl::Hours(1);
  Start();
  metrics_.Await("ok", 1);
  const absl::Time again = absl::Now();
  reader_ = nullptr;
  EXPECT_LT(absl::Now() - again, absl::Seconds(2));
}

TEST_F(LoadReaderTest, VetoesAreKeptAfterTheirEnd) {
  options_.veto_for = absl::Milliseconds(500);
  options_.query.max_sample_age = absl::Minutes(2);
  prometheus_.Say(Samples(HostRows(0.25) + XidRow(79)));
  Start();
  metrics_.Await("ok", 2);
  auto snapshot = reader_->Latest();
  ASSERT_EQ(snapshot->vetoes.size(), 1u);
  EXPECT_EQ(snapshot->vetoes[0].code, 79);
  EXPECT_EQ(snapshot->vetoes[0].gpu, "3");
  // While it is shown, it holds until samples would be too old.
  EXPECT_EQ(snapshot->vetoes[0].until, snapshot->asked + absl::Minutes(2));
  // A program's error at the same time hides it: it still holds for a while.
  prometheus_.Say(Samples(HostRows(0.25) + XidRow(43)));
  prometheus_.AwaitRequests(2);
  snapshot = reader_->Latest();
  ASSERT_EQ(snapshot->vetoes.size(), 1u);
  EXPECT_LE(snapshot->vetoes[0].until, absl::Now() + absl::Milliseconds(500));
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while (!reader_->Latest()->vetoes.empty() && absl::Now() < until) std::this_thread::yield();
  EXPECT_THAT(reader_->Latest()->vetoes, IsEmpty());
}

TEST_F(LoadReaderTest, MissingSamplesAreReported) {
  prometheus_.Say(Samples(""));
  Start();
  metrics_.Await("no_samples", 1);
  EXPECT_TRUE(reader_->Latest()->hosts.empty());
}

// The arguments forbid a token over http; the client itself sends it.
TEST_F(LoadReaderTest, TokensAreReadForEachRequest) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/token-", getpid());
  options_.server.bearer_token_file = file;
  prometheus_.Say(Samples(HostRows(0.25)));
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

TEST_F(LoadReaderTest, ProfilesShareOneWithTheSameOptions) {
  prometheus_.Say(Samples(HostRows(0.25)));
  auto one = LoadReader::Shared(options_, &metrics_);
  auto two = LoadReader::Shared(options_, &metrics_);
  EXPECT_EQ(one, two);
  metrics_.Await("ok", 1);
  one = nullptr;
  EXPECT_NE(two->Latest(), nullptr);
  ReaderOptions others = options_;
  others.query.node_labels = {"node"};
  EXPECT_NE(LoadReader::Shared(others, &metrics_), two);
  two = nullptr;
  EXPECT_EQ(LoadReader::Shared(options_, &metrics_)->Latest(), nullptr) << "a new reader";
}

}  // namespace
}  // namespace outboard::gpu_load
