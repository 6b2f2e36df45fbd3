#include "plugin_host/sdk/prometheus/testing/fake_prometheus.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace outboard::prometheus::testing {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

// Of one with `Content-Length`, the body too.
std::string ReadRequest(int fd) {
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

// The server only looks for letters and underscores, which are not escaped.
bool IsAbout(const std::string& request, const std::string& part) {
  return absl::StrContains(request, part);
}

struct CountingCounter : sdk::Counter {
  explicit CountingCounter(std::atomic<double>* where) : count(where) {}
  void Add(double amount) override { count->fetch_add(amount); }
  std::atomic<double>* count;
};

}  // namespace

std::string Ok(const std::string& body) {
  return absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ",
                      body.size(), "\r\n\r\n", body);
}

std::string SamplesAnswer(const std::string& samples) {
  return Ok(absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)", samples,
                         "]}}"));
}

std::string SampleJson(const std::string& labels, const std::string& value) {
  return absl::StrCat(R"({"metric":{)", labels, R"(},"value":[100,")", value, R"("]})");
}

FakePrometheus::FakePrometheus() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
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

FakePrometheus::~FakePrometheus() {
  stopped_ = true;
  thread_.join();
  for (const int fd : hanging_) close(fd);
  close(fd_);
}

void FakePrometheus::Say(std::string answer) {
  absl::MutexLock lock(&mutex_);
  answer_ = std::move(answer);
}

void FakePrometheus::SayTo(const std::string& part, std::string answer) {
  absl::MutexLock lock(&mutex_);
  answers_[part] = std::move(answer);
}

std::string FakePrometheus::AwaitRequests(int more) {
  absl::MutexLock lock(&mutex_);
  return Await(requests_ + more);
}

void FakePrometheus::AwaitFirstRequest() {
  absl::MutexLock lock(&mutex_);
  Await(1);
}

std::string FakePrometheus::Await(int want) {
  const auto there = [&] { return requests_ >= want; };
  EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&there), kPatience));
  return last_;
}

const std::string& FakePrometheus::AnswerTo(const std::string& request) const {
  for (const auto& [part, answer] : answers_) {
    if (IsAbout(request, part)) return answer;
  }
  return answer_;
}

void FakePrometheus::Serve() {
  while (!stopped_) {
    pollfd listening = {fd_, POLLIN, 0};
    if (poll(&listening, 1, 20) <= 0) continue;
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::string request = ReadRequest(fd);
    absl::MutexLock lock(&mutex_);
    ++requests_;
    last_ = request;
    const std::string& answer = AnswerTo(request);
    if (answer.empty()) {
      hanging_.push_back(fd);
      continue;
    }
    // The client may close the connection early.
    for (size_t sent = 0; sent < answer.size();) {
      const ssize_t n = send(fd, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    close(fd);
  }
}

std::shared_ptr<sdk::Counter> ReadCounts::NewCounter(absl::string_view,
                                                     const std::vector<std::string>& values) {
  return std::make_shared<CountingCounter>(CountOf(values.back()));
}
std::shared_ptr<sdk::Gauge> ReadCounts::NewGauge(absl::string_view name,
                                                 const std::vector<std::string>& values) {
  return sdk::NoMetrics()->NewGauge(name, values);
}
std::shared_ptr<sdk::Histogram> ReadCounts::NewHistogram(absl::string_view name,
                                                         const std::vector<std::string>& values) {
  return sdk::NoMetrics()->NewHistogram(name, values);
}

void ReadCounts::Await(const std::string& result, int count) {
  const std::atomic<double>* counted = CountOf(result);
  const absl::Time until = absl::Now() + kPatience;
  while (*counted < count && absl::Now() < until) std::this_thread::yield();
  EXPECT_GE(*counted, count) << result;
}

int ReadCounts::count(const std::string& result) { return static_cast<int>(*CountOf(result)); }

std::atomic<double>* ReadCounts::CountOf(const std::string& result) {
  absl::MutexLock lock(&mutex_);
  return &counts_[result];
}

}  // namespace outboard::prometheus::testing
