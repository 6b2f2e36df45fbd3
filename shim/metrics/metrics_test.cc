#include "shim/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "shim/http/testing/authority.h"

namespace outboard::metrics {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Lines(const Metrics& metrics) {
  return absl::StrSplit(metrics.Text(), '\n');
}

const char* TypeName(MetricType type) {
  return type == MetricType::kCounter ? "counter"
         : type == MetricType::kGauge ? "gauge"
                                      : "histogram";
}

// Writes a file and returns its name.
std::string File(const char* name, const std::string& text) {
  std::string path = absl::StrCat(::testing::TempDir(), "/", name);
  std::ofstream(path) << text;
  return path;
}

// Creates one child of every metric with labels: without children a metric has no output.
void TouchAll(Metrics& m) {
  m.Profile("p");
  m.event_handling_duration.With({"e"});
  m.in_flight_events.With({"e"});
  m.PodScheduled(1, absl::Seconds(1));
  m.extension_point_duration.With({"Filter", "Success", "p"});
  m.queue_incoming_pods.With({"active", "PodAdd"});
  m.permit_wait_duration.With({"allowed"});
  m.unschedulable_pods.With({"NodeName", "p"});
  m.plugin_evaluations.With({"NodeName", "Filter", "p"});
  m.client_requests.With({"200", "GET", "h"});
  m.client_request_duration.With({"GET", "h"});
  m.leader.With({"l"});
  m.host_call_duration.With({"h", "Cycle"});
  m.host_evaluation_duration.With({"h", "Cycle"});
  m.host_calls.With({"h", "Cycle", "OK"});
  m.host_protocol_errors.With({"h"});
  m.host_failure_policies.With({"h", "score", "FailOpen"});
  m.host_state.With({"h", "i", "serving"});
  m.certificates.SetFiles({File("ca", http::testing::Authority("a").pem())});
  m.serving_certificate_reloads.With({"reloaded"});
  m.http_authorization.With({"allowed"});
  m.host_info.With({"h", "i", "b", "v1beta1"});
  m.host_switches.With({"h", "switched"});
  m.host_acked_version.With({"h"});
  m.guard_refusals.With({"cpu"});
  m.preemptions_limited.With({"minute"});
  m.binds.With({"bound"});
  m.status_patches.With({"written"});
  m.events.With({"written"});
  m.informer_objects.With({"pods"});
  m.informer_undecoded_objects.With({"pods"});
  m.informer_events.With({"pods", "ADDED"});
  m.informer_lists.With({"pods", "start"});
  m.effects.With({"StaticIP", "applied"});
  m.ai_attempts.With({"training", "scheduled"});
  m.gang_wait.With({"default", "bound"});
  m.extender_duration.With({"filter", "answered"});
  m.config_info.With({"sha256:0"});
  m.unknown_profile_pods.With({"ai-batch"});
}

TEST(Metrics, EveryNameIsExposedWithItsTypeLabelsAndBuckets) {
  Metrics metrics("0.1.0");
  TouchAll(metrics);
  const std::vector<std::string> lines = Lines(metrics);
  std::set<std::string> typed;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, "# TYPE ")) typed.insert(line.substr(7));
  }
  EXPECT_EQ(typed.size(), AllMetrics().size());
  for (const MetricSpec* spec : AllMetrics()) {
    EXPECT_EQ(typed.count(absl::StrCat(spec->name, " ", TypeName(spec->type))), 1u) << spec->name;
    const std::string sample =
        absl::StrCat(spec->name, spec->type == MetricType::kHistogram ? "_sum" : "");
    std::string found;
    int buckets = 0;
    for (const std::string& line : lines) {
      if (absl::StartsWith(line, sample + "{") || absl::StartsWith(line, sample + " "))
        found = line;
      if (absl::StartsWith(line, absl::StrCat(spec->name, "_bucket"))) ++buckets;
    }
    ASSERT_FALSE(found.empty()) << spec->name;
    for (const char* label : spec->labels) {
      if (label == nullptr) continue;
      EXPECT_THAT(found, HasSubstr(absl::StrCat(label, "=\""))) << spec->name;
    }
    if (spec->type == MetricType::kHistogram) {
      EXPECT_EQ(buckets % (spec->buckets.count + 1), 0) << spec->name;
    }
  }
}

// Lines that a Prometheus server would reject.
TEST(Metrics, TextIsWellFormed) {
  Metrics metrics("0.1.0");
  TouchAll(metrics);
  metrics.queue_incoming_pods.With({"active", "a\"b\\c\nd"}).Increment();
  EXPECT_THAT(metrics.Text(), HasSubstr("event=\"a\\\"b\\\\c\\nd\""));
  for (const std::string& line : Lines(metrics)) {
    if (line.empty() || absl::StartsWith(line, "# HELP ") || absl::StartsWith(line, "# TYPE "))
      continue;
    EXPECT_THAT(line, ::testing::MatchesRegex("[a-z_]+(\\{.*\\})? [^ ]+"));
    double value = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value)) << line;
  }
}

TEST(Metrics, CountsAndObserves) {
  Metrics metrics("0.1.0");
  ProfileMetrics& profile = metrics.Profile("default-scheduler");
  EXPECT_EQ(&profile, &metrics.Profile("default-scheduler"));
  profile.AttemptEnded(AttemptResult::kScheduled, absl::Milliseconds(3));
  profile.AttemptEnded(AttemptResult::kScheduled, absl::Milliseconds(5));
  profile.AttemptEnded(AttemptResult::kError, absl::Milliseconds(5));
  metrics.AlgorithmEnded(absl::Microseconds(100));
  metrics.PodScheduled(15, absl::Seconds(1));
  metrics.pending_gated.Set(4);
  const std::vector<std::string> lines = Lines(metrics);
  EXPECT_THAT(lines, Contains("scheduler_schedule_attempts_total{profile=\"default-scheduler\","
                              "result=\"scheduled\"} 2"));
  EXPECT_THAT(
      lines,
      Contains(
          "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"error\"} 1"));
  EXPECT_THAT(lines, Contains("scheduler_scheduling_attempt_duration_seconds_bucket{profile="
                              "\"default-scheduler\",result="
                              "\"scheduled\",le=\"0.004\"} 1"));
  EXPECT_THAT(lines,
              Contains("scheduler_scheduling_algorithm_duration_seconds_bucket{le=\"0.001\"} 1"));
  EXPECT_THAT(lines, Contains("outboard_algorithm_duration_seconds_count 1"));
  EXPECT_THAT(lines,
              Contains("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"15+\"} 1"));
  EXPECT_THAT(lines, Contains("scheduler_pending_pods{queue=\"gated\"} 4"));
  EXPECT_THAT(lines, Contains("scheduler_pending_pods{queue=\"active\"} 0"));
  EXPECT_THAT(lines, Contains("outboard_build_info{version=\"0.1.0\"} 1"));
}

TEST(Metrics, ChildrenCanBeForgotten) {
  Metrics metrics("0.1.0");
  metrics.host_state.With({"h", "i", "serving"}).Set(1);
  EXPECT_THAT(metrics.Text(), HasSubstr("outboard_host_state{"));
  metrics.host_state.Clear();
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("outboard_host_state{")));
  metrics.host_state.With({"h", "i", "standby"}).Set(1);
  EXPECT_THAT(metrics.Text(),
              HasSubstr("outboard_host_state{host=\"h\",instance=\"i\",state=\"standby\"} 1"));
}

TEST(Metrics, ProcessFiguresAreReal) {
  Metrics metrics("0.1.0");
  const std::string text = metrics.Text();
  for (const MetricSpec* spec : {&kProcessCpu, &kProcessRss, &kProcessFds, &kProcessStart}) {
    double value = -1;
    for (const std::string& line : Lines(metrics)) {
      if (absl::StartsWith(line, absl::StrCat(spec->name, " "))) {
        ASSERT_TRUE(absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &value));
      }
    }
    EXPECT_GT(value, 0) << spec->name;
    if (spec == &kProcessStart) {
      const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
      EXPECT_LT(value, now + 2);
      EXPECT_GT(value, now - 3600);
    }
  }
}

TEST(Metrics, ThreadsMayObserveWhileOthersRead) {
  Metrics metrics("0.1.0");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        metrics.Profile(absl::StrCat("p", t % 2))
            .AttemptEnded(AttemptResult::kScheduled, absl::Milliseconds(i));
        metrics.plugin_evaluations.With({absl::StrCat("plugin", i % 7), "Filter", "p"}).Increment();
        if (i % 200 == 0) (void)metrics.Text();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(metrics.schedule_attempts.With({"scheduled", "p0"}).Value(), 2000);
  EXPECT_EQ(metrics.schedule_attempts.With({"scheduled", "p1"}).Value(), 2000);
}

// Compares the page's table of the shim, `| name | type | labels | help |`, with the header, in the
// same order.
TEST(MetricsPage, HasTheTableOfTheHeader) {
  std::ifstream file("docs/metrics.md");
  ASSERT_TRUE(file.good());
  std::vector<std::string> have;
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "## Of the host")) break;
    if (absl::StartsWith(line, "| `")) have.push_back(line);
  }
  std::vector<std::string> want;
  for (const MetricSpec* spec : AllMetrics()) {
    std::vector<std::string> labels;
    for (const char* label : spec->labels) {
      if (label != nullptr) labels.push_back(label);
    }
    want.push_back(absl::StrCat("| `", spec->name, "` | ", TypeName(spec->type), " | ",
                                absl::StrJoin(labels, ", "), " | ", spec->help, " |"));
  }
  EXPECT_EQ(have, want);
}

TEST(MetricsTest, ExpirationOfTheFirstCertificateOfEachFile) {
  Metrics metrics("1");
  http::testing::Authority authority("a");
  const std::string good =
      File("good", authority.Issue("server", "serverAuth").certificate + authority.pem());
  metrics.certificates.SetFiles({"", good, File("bad", "no certificate"), "/does/not/exist", good});
  const std::string name = "outboard_certificate_expiration_timestamp_seconds";
  std::vector<std::string> samples;
  for (const std::string& line : Lines(metrics)) {
    if (absl::StartsWith(line, absl::StrCat(name, "{"))) samples.push_back(line);
  }
  ASSERT_THAT(samples, ::testing::ElementsAre(
                           ::testing::StartsWith(absl::StrCat(name, "{file=\"", good, "\"} "))));
  double value = 0;
  ASSERT_TRUE(absl::SimpleAtod(samples[0].substr(samples[0].rfind(' ') + 1), &value));
  // The authority's certificates are valid for an hour.
  EXPECT_NEAR(value, static_cast<double>(absl::ToUnixSeconds(absl::Now())) + 3600, 60);
  metrics.certificates.SetFiles({});
  EXPECT_THAT(metrics.Text(), Not(HasSubstr(absl::StrCat(name, "{"))));
}

}  // namespace
}  // namespace outboard::metrics
