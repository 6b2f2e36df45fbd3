#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "plugin_host/metrics/metrics_server.h"
#include "plugin_host/metrics/prometheus_metrics.h"
#include "plugin_host/runtime/plugin_times.h"
#include "plugins/builtin_plugins.h"

namespace outboard::host_metrics {
namespace {

using sdk::MetricSpec;
using sdk::MetricType;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const PrometheusMetrics& metrics) {
  return absl::StrSplit(metrics.Text(), '\n');
}

// The lines with metrics, without comments.
std::set<std::string> Types(const PrometheusMetrics& metrics) {
  std::set<std::string> types;
  for (const std::string& line : Lines(metrics)) {
    if (absl::StartsWith(line, "# TYPE ")) types.insert(line);
  }
  return types;
}

TEST(PrometheusMetricsTest, CountsSetsAndObserves) {
  PrometheusMetrics metrics("0.1.0");
  const MetricSpec counter{"seen_total", MetricType::kCounter, {"kind"}, "Seen."};
  const MetricSpec histogram{"wait_seconds", MetricType::kHistogram, {}, "Wait.", {1, 10}};
  metrics.NewCounter(counter, {"a"})->Add(2);
  metrics.NewCounter(counter, {"a"})->Add();
  metrics.NewHistogram(histogram, {})->Observe(5);
  const auto gauge = metrics.NewGauge({"depth", MetricType::kGauge, {}, "Depth."}, {});
  gauge->Set(-1.5);
  EXPECT_THAT(Lines(metrics), Contains("seen_total{kind=\"a\"} 3"));
  EXPECT_THAT(Lines(metrics), Contains("wait_seconds_bucket{le=\"1\"} 0"));
  EXPECT_THAT(Lines(metrics), Contains("wait_seconds_bucket{le=\"10\"} 1"));
  EXPECT_THAT(Lines(metrics), Contains("depth -1.5"));
  EXPECT_THAT(Lines(metrics), Contains("outboard_build_info{version=\"0.1.0\"} 1"));
}

TEST(PrometheusMetricsTest, GaugesAreExposedWhileTheyHaveAHolder) {
  auto metrics = std::make_unique<PrometheusMetrics>("0.1.0");
  const MetricSpec spec{"depth", MetricType::kGauge, {"profile"}, "Depth."};
  auto one = metrics->NewGauge(spec, {"p"});
  auto two = metrics->NewGauge(spec, {"p"});
  one->Set(1);
  two->Set(2);
  one = nullptr;
  EXPECT_THAT(Lines(*metrics), Contains("depth{profile=\"p\"} 2"));
  two = nullptr;
  EXPECT_THAT(metrics->Text(), Not(HasSubstr("depth{")));
  two = metrics->NewGauge(spec, {"p"});
  EXPECT_THAT(Lines(*metrics), Contains("depth{profile=\"p\"} 0"));
  metrics = nullptr;
  two->Set(3);  // Used after its registry.
}

TEST(PrometheusMetricsTest, LabelValuesAreBounded) {
  PrometheusMetrics metrics("0.1.0");
  MetricSpec counter{"seen_total", MetricType::kCounter, {"profile", "job"}, "Seen."};
  MetricSpec gauge{"depth", MetricType::kGauge, {"job"}, "Depth."};
  counter.max_children = gauge.max_children = 2;
  std::vector<std::shared_ptr<sdk::Gauge>> gauges;
  for (int i = 0; i < 10; ++i) {
    metrics.NewCounter(counter, {"p", absl::StrCat("job-", i)})->Add();
    gauges.push_back(metrics.NewGauge(gauge, {absl::StrCat("job-", i)}));
    gauges.back()->Set(i);
  }
  metrics.NewCounter(counter, {"p", "job-1"})->Add();
  EXPECT_THAT(Lines(metrics), Contains("seen_total{job=\"job-1\",profile=\"p\"} 2"));
  EXPECT_THAT(Lines(metrics), Contains("seen_total{job=\"other\",profile=\"other\"} 8"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("job-2")));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("depth{job=\"other\"")));
  // A removed child makes room for another.
  gauges[0] = nullptr;
  gauges[5] = metrics.NewGauge(gauge, {"job-5"});
  EXPECT_THAT(metrics.Text(), HasSubstr("depth{job=\"job-5\"}"));
}

// As from a faulty shared object; prometheus-cpp throws on some of them.
TEST(PrometheusMetricsTest, WhatPrometheusDoesNotTakeDoesNothing) {
  PrometheusMetrics metrics("0.1.0");
  const std::set<std::string> before = Types(metrics);
  for (const MetricSpec& spec : std::vector<MetricSpec>{
           {"", MetricType::kCounter, {}, ""},
           {"has space", MetricType::kCounter, {}, ""},
           {"7up_total", MetricType::kCounter, {}, ""},
           {"ümlaut_total", MetricType::kCounter, {}, ""},
           {"fine_total", MetricType::kCounter, {"__name__"}, ""},
           {"fine_total", MetricType::kCounter, {"le"}, ""},
           {"fine_total", MetricType::kCounter, {"a-b"}, ""},
       }) {
    metrics.NewCounter(spec, std::vector<std::string>(spec.labels.size(), "x"))->Add();
  }
  metrics.NewHistogram({"wait_seconds", MetricType::kHistogram, {}, "", {2, 1}}, {})->Observe(1);
  EXPECT_EQ(Types(metrics), before);
  // A name that already exists.
  metrics.NewCounter({"taken_total", MetricType::kCounter, {"a"}, ""}, {"x"})->Add();
  metrics.NewCounter({"taken_total", MetricType::kCounter, {"b"}, ""}, {"x"})->Add();
  metrics.NewGauge({"taken_total", MetricType::kGauge, {"a"}, ""}, {"x"})->Set(7);
  EXPECT_THAT(Lines(metrics), Contains("taken_total{a=\"x\"} 1"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("b=\"x\"")));
}

TEST(PrometheusMetricsTest, ThreadsMayBindAndLetGoWhileOthersRead) {
  PrometheusMetrics metrics("0.1.0");
  const MetricSpec counter{"seen_total", MetricType::kCounter, {"kind"}, "Seen."};
  const MetricSpec gauge{"depth", MetricType::kGauge, {"kind"}, "Depth."};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const std::string kind = absl::StrCat("k", i % 3);
        metrics.NewCounter(counter, {kind})->Add();
        metrics.NewGauge(gauge, {kind})->Set(i);
        if (i % 100 == 0) (void)metrics.Text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Lines(metrics), Contains("seen_total{kind=\"k0\"} 668"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("depth{")));
}

TEST(PrometheusMetricsTest, ProcessFiguresAreReal) {
  PrometheusMetrics metrics("0.1.0");
  for (size_t i = 1; i < ProcessMetricSpecs().size(); ++i) {
    const std::string& name = ProcessMetricSpecs()[i].name;
    double value = -1;
    for (const std::string& line : Lines(metrics)) {
      if (absl::StartsWith(line, absl::StrCat(name, " "))) {
        ASSERT_TRUE(absl::SimpleAtod(line.substr(name.size() + 1), &value)) << line;
      }
    }
    const bool may_be_zero =
        name == "process_cpu_seconds_total" || name == "outboard_log_lines_dropped_total";
    EXPECT_GE(value, may_be_zero ? 0 : 1) << name;
    if (name == "process_start_time_seconds") {
      const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
      EXPECT_LT(value, now + 2);
      EXPECT_GT(value, now - 3600);
    }
  }
}

// All that a server says to a request, headers included.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::string Ask(int port, const std::string& request) {
  const int fd = Connect(port);
  std::string answer;
  if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) answer.append(buffer, n);
  }
  close(fd);
  return answer;
}

int PortOf(const MetricsServer& server) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server.address().substr(server.address().rfind(':') + 1), &port));
  return port;
}

TEST(MetricsServerTest, ServesWhatThereIs) {
  PrometheusMetrics metrics("0.1.0");
  const auto server = MetricsServer::Start("127.0.0.1:0", &metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = PortOf(**server);
  ASSERT_GT(port, 0);
  metrics.NewCounter({"seen_total", MetricType::kCounter, {}, "Seen."}, {})->Add(7);
  const std::string answer = Ask(port, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(answer, HasSubstr("\nseen_total 7\n"));
  EXPECT_THAT(answer, HasSubstr("\nprocess_open_fds "));
  EXPECT_THAT(Ask(port, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), HasSubstr("HTTP/1.1 404"));
}

TEST(MetricsServerTest, OtherAddressesOnlyIfWanted) {
  PrometheusMetrics metrics("0.1.0");
  for (const char* address : {"0.0.0.0:0", "[::]:0", "localhost:0", "127.0.0.2:0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(MetricsServer::Start(address, &metrics).status()))
        << address;
  }
  const auto server = MetricsServer::Start("0.0.0.0:0", &metrics, /*unprotected=*/true);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Ask(PortOf(**server), "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"),
              HasSubstr("HTTP/1.1 200 OK"));
  for (const char* address : {"localhost:0", "[127.0.0.1]:0", "::1:0", ":0", "0.0.0.0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(
        MetricsServer::Start(address, &metrics, /*unprotected=*/true).status()))
        << address;
  }
}

// The bodies never come: the answer does not wait for them.
TEST(MetricsServerTest, RefusesBodiesWithoutReadingThem) {
  PrometheusMetrics metrics("0.1.0");
  const auto server = MetricsServer::Start("127.0.0.1:0", &metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  for (const char* path : {"/metrics", "/"}) {
    for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "PRI"}) {
      for (const char* body : {"Transfer-Encoding: chunked\r\n", ""}) {
        EXPECT_THAT(Ask(PortOf(**server),
                        absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: h\r\n", body, "\r\n")),
                    HasSubstr("HTTP/1.1 405"));
      }
    }
  }
  EXPECT_THAT(Ask(PortOf(**server),
                  "GET /metrics HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"),
              HasSubstr("HTTP/1.1 413"));
}

// A header line without an end does not fill the host's memory, and the next scrape is served.
TEST(MetricsServerTest, EndsARequestThatIsTooLong) {
  PrometheusMetrics metrics("0.1.0");
  const auto server = MetricsServer::Start("127.0.0.1:0", &metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  const int fd = Connect(PortOf(**server));
  const std::string piece = "GET /metrics HTTP/1.1 X: " + std::string(1 << 20, 'x');
  size_t sent = 0;
  ssize_t n = 0;
  while (sent < (1u << 30) && (n = send(fd, piece.data(), piece.size(), MSG_NOSIGNAL)) > 0)
    sent += static_cast<size_t>(n);
  close(fd);
  EXPECT_LT(sent, 64u << 20);  // the kernel's buffers hold a part
  EXPECT_THAT(Ask(PortOf(**server), "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n"),
              HasSubstr("HTTP/1.1 200"));
}

// A client that sends nothing or does not read gives way to the next.
TEST(MetricsServerTest, SlowClientsGiveWay) {
  PrometheusMetrics metrics("0.1.0");
  const auto server = MetricsServer::Start("127.0.0.1:0", &metrics);
  ASSERT_TRUE(server.ok()) << server.status();
  // More than the kernel's buffers hold.
  metrics.NewCounter({"n_total", MetricType::kCounter, {}, std::string(size_t{16} << 20, 'n')}, {});
  std::vector<int> slow;
  const absl::Time begun = absl::Now();
  for (int i = 0; i < 5; ++i) {
    slow.push_back(Connect(PortOf(**server)));
    const std::string request = i % 2 == 0 ? "GET /met" : "GET /metrics HTTP/1.1\r\n\r\n";
    send(slow.back(), request.data(), request.size(), MSG_NOSIGNAL);
  }
  EXPECT_THAT(Ask(PortOf(**server), "GET / HTTP/1.1\r\n\r\n"), HasSubstr("HTTP/1.1 404"));
  EXPECT_LT(absl::Now() - begun, absl::Seconds(2));
  for (const int fd : slow) close(fd);
}

TEST(MetricsServerTest, TakesOnlyLoopbackAndFreePorts) {
  PrometheusMetrics metrics("0.1.0");
  for (const char* address :
       {"0.0.0.0:0", ":0", "9090", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
        "127.0.0.1:-1", "127.0.0.1:0s,0.0.0.0:0", "localhost:1", ""}) {
    EXPECT_EQ(MetricsServer::Start(address, &metrics).status().code(),
              absl::StatusCode::kInvalidArgument)
        << address;
  }
  const auto first = MetricsServer::Start("127.0.0.1:0", &metrics);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(MetricsServer::Start((*first)->address(), &metrics).status().code(),
            absl::StatusCode::kUnavailable);
}

// The README's table lists the process's metrics, the instances', and every plugin's, in the order
// of their names.
TEST(MetricsPage, HasEveryMetricOfTheHost) {
  sdk::PluginRegistry plugins;
  ASSERT_TRUE(RegisterBuiltinPlugins(&plugins).ok());
  const auto row = [](const std::string& keeper, const MetricSpec& spec) {
    const char* type = spec.type == MetricType::kCounter ? "counter"
                       : spec.type == MetricType::kGauge ? "gauge"
                                                         : "histogram";
    return absl::StrCat("| `", spec.name, "` | ", type, " | ", absl::StrJoin(spec.labels, ", "),
                        " | ", keeper, " | ", spec.help, " |");
  };
  std::vector<std::string> want;
  for (const MetricSpec& spec : ProcessMetricSpecs()) want.push_back(row("process", spec));
  want.push_back(row("instance", runtime::SessionsMetric()));
  want.push_back(row("instance", runtime::AttemptsInFlightMetric()));
  want.push_back(row("session", runtime::WritesMetric()));
  want.push_back(row("session", runtime::PluginDurationMetric()));
  for (const auto& [name, descriptor] : plugins.descriptors()) {
    for (const MetricSpec& spec : descriptor.metrics) want.push_back(row(name, spec));
  }
  std::ifstream file("docs/metrics.md");
  ASSERT_TRUE(file.good());
  std::vector<std::string> have;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "## Of the host")) have.clear();
    if (absl::StartsWith(line, "| `")) have.push_back(line);
  }
  EXPECT_EQ(have, want);
}

// Each can be bound: names are unique, and Prometheus accepts them all.
TEST(BuiltinPluginsTest, MetricsCanBeKeptTogether) {
  sdk::PluginRegistry plugins;
  ASSERT_TRUE(RegisterBuiltinPlugins(&plugins).ok());
  PrometheusMetrics metrics("0.1.0");
  std::vector<std::shared_ptr<void>> held;
  for (const auto& [name, descriptor] : plugins.descriptors()) {
    for (const MetricSpec& spec : descriptor.metrics) {
      const std::vector<std::string> values(spec.labels.size(), name);
      EXPECT_THAT(metrics.Text(), Not(HasSubstr(absl::StrCat("# HELP ", spec.name, " "))));
      if (spec.type == MetricType::kCounter) held.push_back(metrics.NewCounter(spec, values));
      if (spec.type == MetricType::kGauge) held.push_back(metrics.NewGauge(spec, values));
      if (spec.type == MetricType::kHistogram) held.push_back(metrics.NewHistogram(spec, values));
      EXPECT_THAT(metrics.Text(), HasSubstr(absl::StrCat("# HELP ", spec.name, " ", spec.help)));
    }
  }
}

}  // namespace
}  // namespace outboard::host_metrics
