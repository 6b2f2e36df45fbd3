#include "shim/metrics_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace outboard::shim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

kube::PodObject PodWith(const std::string& label, const std::string& value) {
  kube::PodObject pod;
  (*pod.pod.mutable_labels())[label] = value;
  return pod;
}

class MetricsObserverTest : public ::testing::Test {
 protected:
  void End(const kube::PodObject& pod, scheduler::AttemptResult result) {
    observer_.OnAttemptEnd(pod, "p", result, "", "", absl::Milliseconds(1));
  }
  void Wait(const kube::PodObject& pod) {
    observer_.OnPermitWaitEnd(pod, absl::Seconds(20), v1alpha1::SUCCESS);
  }

  metrics::Metrics metrics_{"0.1.0"};
  MetricsObserver observer_{&metrics_};
};

TEST_F(MetricsObserverTest, AttemptsAreCountedByTheWorkloadsThatUsersName) {
  End(PodWith("workload-type", "training"), scheduler::AttemptResult::kScheduled);
  End(PodWith("workload-type", "cpu-intensive"), scheduler::AttemptResult::kUnschedulable);
  End(PodWith("workload-type", "my own"), scheduler::AttemptResult::kScheduled);
  End(PodWith("workload-type", "another"), scheduler::AttemptResult::kScheduled);
  End(PodWith("a", "b"), scheduler::AttemptResult::kError);
  const auto count = [this](const char* type, const char* result) {
    return metrics_.ai_attempts.With({type, result}).Value();
  };
  EXPECT_EQ(count("training", "scheduled"), 1);
  EXPECT_EQ(count("CPU-intensive", "unschedulable"), 1);
  EXPECT_EQ(count("other", "scheduled"), 2);
  EXPECT_EQ(count("none", "error"), 1);
}

TEST_F(MetricsObserverTest, WaitsOfGangsAreKeptByJobUpToABound) {
  Wait(PodWith("a", "b"));
  EXPECT_THAT(metrics_.Text(), Not(HasSubstr("gang_scheduling_wait_seconds_count")));
  for (int i = 0; i < 150; ++i) Wait(PodWith("job-name", absl::StrCat("job-", i)));
  Wait(PodWith("job-name", "job-7"));
  const std::string text = metrics_.Text();
  EXPECT_THAT(text, HasSubstr("gang_scheduling_wait_seconds_count{job_name=\"job-7\"} 2"));
  EXPECT_THAT(text, HasSubstr("gang_scheduling_wait_seconds_count{job_name=\"other\"} 50"));
  EXPECT_THAT(text, Not(HasSubstr("job-120")));
  EXPECT_THAT(text, HasSubstr("{job_name=\"job-7\",le=\"10\"} 0"));
  EXPECT_THAT(text, HasSubstr("{job_name=\"job-7\",le=\"30\"} 2"));
  EXPECT_THAT(text, HasSubstr("{job_name=\"job-7\",le=\"600\"} 2"));
}

}  // namespace
}  // namespace outboard::shim
