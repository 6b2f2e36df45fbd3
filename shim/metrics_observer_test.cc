#include "shim/metrics_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace outboard::shim {
namespace {

using ::testing::HasSubstr;

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

  double Attempts(const char* type, const char* result) {
    return metrics_.ai_attempts.With({type, result}).Value();
  }

  // The lines about waits of gangs.
  std::string GangWaits() const {
    std::string lines;
    const std::string text = metrics_.Text();
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      if (absl::StartsWith(line, "gang_scheduling_wait")) absl::StrAppend(&lines, line, "\n");
    }
    return lines;
  }

  metrics::Metrics metrics_{"0.1.0"};
  MetricsObserver observer_{&metrics_, config::WorkloadLabels(), [] { return now; }};
  static inline absl::Time now;
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
  observer_.SetLabels(labels);
  End(PodWith("workload-type", "training"), scheduler::AttemptResult::kScheduled);
  End(PodWith("example.com/team", "vision"), scheduler::AttemptResult::kScheduled);
  End(PodWith("example.com/team", "training"), scheduler::AttemptResult::kScheduled);
  EXPECT_EQ(Attempts("training", "scheduled"), 1) << "what was counted stays";
  EXPECT_EQ(Attempts("none", "scheduled"), 1);
  EXPECT_EQ(Attempts("Vision", "scheduled"), 1);
  EXPECT_EQ(Attempts("other", "scheduled"), 1);
}

TEST_F(MetricsObserverTest, WithoutTheLabelTheTypeIsRecognised) {
  End(PodWith("jobset.sigs.k8s.io/jobset-name", "j"), scheduler::AttemptResult::kScheduled);
  End(PodWith("serving.kserve.io/inferenceservice", "i"), scheduler::AttemptResult::kError);
  kube::PodObject pod;
  pod.pod.mutable_controller()->set_kind("ReplicaSet");
  End(pod, scheduler::AttemptResult::kUnschedulable);
  // The user's word precedes.
  pod = PodWith("jobset.sigs.k8s.io/jobset-name", "j");
  (*pod.pod.mutable_labels())["workload-type"] = "inference";
  End(pod, scheduler::AttemptResult::kScheduled);
  EXPECT_EQ(Attempts("training", "scheduled"), 1);
  EXPECT_EQ(Attempts("inference", "error"), 1);
  EXPECT_EQ(Attempts("service", "unschedulable"), 1);
  EXPECT_EQ(Attempts("inference", "scheduled"), 1);
}

TEST_F(MetricsObserverTest, WithoutAConfiguredLabelTypesAreOnlyRecognised) {
  config::WorkloadLabels labels;
  labels.type_label = "";
  observer_.SetLabels(labels);
  End(PodWith("workload-type", "inference"), scheduler::AttemptResult::kScheduled);
  EXPECT_EQ(Attempts("inference", "scheduled"), 0);
  EXPECT_EQ(Attempts("none", "scheduled"), 1);
}

// What a gang's wait is: gang_waits_test.cc.
TEST_F(MetricsObserverTest, GangsWaitByTheSchedulersClock) {
  now = absl::UnixEpoch();
  kube::PodObject pod = PodWith("run", "a");
  pod.pod.set_uid("uid");
  pod.pod.set_namespace_("ns");
  config::WorkloadLabels labels;
  labels.job_labels = {"run"};
  observer_.SetLabels(labels);
  observer_.OnPod(pod);
  now += absl::Seconds(20);
  observer_.OnPermitWaitEnd(pod, absl::Seconds(3), v1beta1::CODE_UNSCHEDULABLE);
  now += absl::Seconds(20);
  observer_.OnPermitWaitEnd(pod, absl::Seconds(3), v1beta1::CODE_SUCCESS);
  observer_.OnBound(pod, "p", 2, absl::Seconds(40), false);
  observer_.OnPodLeft(pod);
  const std::string text = GangWaits();
  const std::string sum = "gang_scheduling_wait_seconds_sum{namespace=\"ns\",result=";
  EXPECT_THAT(text, HasSubstr(sum + "\"failed\"} 20\n"));
  EXPECT_THAT(text, HasSubstr(sum + "\"bound\"} 40\n"));
  // Bound by another replica: nothing is observed.
  observer_.OnPod(pod);
  observer_.OnBoundElsewhere(pod);
  observer_.OnPodLeft(pod);
  EXPECT_EQ(GangWaits(), text);
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

}  // namespace
}  // namespace outboard::shim
