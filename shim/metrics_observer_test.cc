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
    observer_.OnPermitWaitEnd(pod, absl::Seconds(20), v1beta1::CODE_SUCCESS);
  }

  double Attempts(const char* type, const char* result) {
    return metrics_.ai_attempts.With({type, result}).Value();
  }

  metrics::Metrics metrics_{"0.1.0"};
  MetricsObserver observer_{&metrics_, config::WorkloadLabels()};
};

TEST_F(MetricsObserverTest, AttemptsAreCountedByTheWorkloadsThatUsersName) {
  End(PodWith("workload-type", "training"), scheduler::AttemptResult::kScheduled);
  End(PodWith("workload-type", "cpu-intensive"), scheduler::AttemptResult::kUnschedulable);
  End(PodWith("workload-type", "my own"), scheduler::AttemptResult::kScheduled);
  End(PodWith("workload-type", "another"), scheduler::AttemptResult::kScheduled);
  End(PodWith("a", "b"), scheduler::AttemptResult::kError);
  EXPECT_EQ(Attempts("training", "scheduled"), 1);
  EXPECT_EQ(Attempts("CPU-intensive", "unschedulable"), 1);
  EXPECT_EQ(Attempts("other", "scheduled"), 2);
  EXPECT_EQ(Attempts("none", "error"), 1);
}

TEST_F(MetricsObserverTest, TheLabelsAreConfiguration) {
  End(PodWith("workload-type", "training"), scheduler::AttemptResult::kScheduled);
  config::WorkloadLabels labels;
  labels.type_label = "example.com/team";
  labels.types = {"Vision"};
  labels.job_labels = {"run", "fallback"};
  observer_.SetLabels(labels);
  End(PodWith("workload-type", "training"), scheduler::AttemptResult::kScheduled);
  End(PodWith("example.com/team", "vision"), scheduler::AttemptResult::kScheduled);
  End(PodWith("example.com/team", "training"), scheduler::AttemptResult::kScheduled);
  EXPECT_EQ(Attempts("training", "scheduled"), 1) << "what was counted stays";
  EXPECT_EQ(Attempts("none", "scheduled"), 1);
  EXPECT_EQ(Attempts("Vision", "scheduled"), 1);
  EXPECT_EQ(Attempts("other", "scheduled"), 1);

  kube::PodObject pod = PodWith("fallback", "b");
  Wait(pod);
  (*pod.pod.mutable_labels())["run"] = "a";
  Wait(pod);
  Wait(PodWith("job-name", "c"));
  pod.pod.set_pod_group_name("group");
  Wait(pod);
  const std::string text = metrics_.Text();
  for (const char* job : {"a", "b", "group"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("gang_scheduling_wait_seconds_count{job_name=\"", job,
                                             "\"} 1")));
  }
  EXPECT_THAT(text, Not(HasSubstr("job_name=\"c\"")));
}

TEST_F(MetricsObserverTest, PointsHaveKubeSchedulersNames) {
  observer_.OnCall(v1beta1::EXTENSION_POINT_PRE_BIND, "p", v1beta1::CODE_SUCCESS,
                   absl::Milliseconds(1));
  observer_.OnFailurePolicy("main", v1beta1::EXTENSION_POINT_SCORE, "UseLast");
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("duration_seconds_count{extension_point=\"PreBind\",profile=\"p\","
                        "status=\"Success\"} 1"));
  EXPECT_EQ(metrics_.host_failure_policies.With({"main", "Score", "UseLast"}).Value(), 1);
}

// Unavailable or late hosts did not violate the contract.
TEST_F(MetricsObserverTest, ProtocolErrorsAreCountedByHost) {
  observer_.OnProtocolError("main", "i-1", absl::InternalError("wrong length"));
  observer_.OnProtocolError("main", "i-2", absl::InternalError("wrong length"));
  observer_.OnProtocolError("main", "i-2", absl::DeadlineExceededError("late"));
  EXPECT_EQ(metrics_.host_protocol_errors.With({"main"}).Value(), 2);
}

TEST_F(MetricsObserverTest, RefusalsOfTheGuardAreCountedByWhatIsShort) {
  observer_.OnGuardRefusal("cpu");
  observer_.OnGuardRefusal("cpu");
  EXPECT_EQ(metrics_.guard_refusals.With({"cpu"}).Value(), 2);
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
