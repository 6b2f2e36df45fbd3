#include "shim/metrics_observer.h"

#include <glog/logging.h>

#include "absl/strings/ascii.h"

namespace outboard::shim {
namespace {

// kube-scheduler's names of the codes.
const char* CodeName(v1beta1::Code code) {
  if (code == scheduler::kWait) return "Wait";
  switch (code) {
    case v1beta1::CODE_SUCCESS:
      return "Success";
    case v1beta1::CODE_UNSCHEDULABLE:
      return "Unschedulable";
    case v1beta1::CODE_UNSCHEDULABLE_AND_UNRESOLVABLE:
      return "UnschedulableAndUnresolvable";
    case v1beta1::CODE_PENDING:
      return "Pending";
    default:
      return "Error";
  }
}

// kube-scheduler's names of the points.
const char* PointName(v1beta1::ExtensionPoint point) {
  switch (point) {
    case v1beta1::EXTENSION_POINT_QUEUE_SORT:
      return "QueueSort";
    case v1beta1::EXTENSION_POINT_PRE_ENQUEUE:
      return "PreEnqueue";
    case v1beta1::EXTENSION_POINT_PRE_FILTER:
      return "PreFilter";
    case v1beta1::EXTENSION_POINT_FILTER:
      return "Filter";
    case v1beta1::EXTENSION_POINT_POST_FILTER:
      return "PostFilter";
    case v1beta1::EXTENSION_POINT_PRE_SCORE:
      return "PreScore";
    case v1beta1::EXTENSION_POINT_SCORE:
      return "Score";
    case v1beta1::EXTENSION_POINT_RESERVE:
      return "Reserve";
    case v1beta1::EXTENSION_POINT_PERMIT:
      return "Permit";
    case v1beta1::EXTENSION_POINT_PRE_BIND:
      return "PreBind";
    case v1beta1::EXTENSION_POINT_BIND:
      return "Bind";
    case v1beta1::EXTENSION_POINT_POST_BIND:
      return "PostBind";
    case v1beta1::EXTENSION_POINT_PLACEMENT_GENERATE:
      return "PlacementGenerate";
    case v1beta1::EXTENSION_POINT_PLACEMENT_SCORE:
      return "PlacementScore";
    case v1beta1::EXTENSION_POINT_POD_GROUP_POST_FILTER:
      return "PodGroupPostFilter";
    default:
      return "unknown";
  }
}

const std::string* FindLabel(const v1beta1::Pod& pod, const std::string& key) {
  const auto found = pod.labels().find(key);
  return found == pod.labels().end() ? nullptr : &found->second;
}

}  // namespace

MetricsObserver::MetricsObserver(metrics::Metrics* metrics, const config::WorkloadLabels& labels,
                                 absl::Time (*clock)())
    : metrics_(metrics),
      clock_(clock),
      attempts_with_other_label_(CountersOf("other")),
      gang_waits_(metrics) {
  for (const workloads::WorkloadType type : workloads::kWorkloadTypes)
    attempts_by_type_[static_cast<size_t>(type)] = CountersOf(workloads::WorkloadTypeName(type));
  SetLabels(labels);
  // Alerts need the families before the first sample.
  for (const char* limit : {"attempt", "minute"}) metrics_->preemptions_limited.With({limit});
}

void MetricsObserver::SetLabels(const config::WorkloadLabels& labels) {
  labels_ = labels;
  gang_waits_.SetJobLabels(labels.job_labels);
  attempts_by_label_.clear();
  for (const std::string& value : labels.types)
    attempts_by_label_[absl::AsciiStrToLower(value)] = CountersOf(value);
}

MetricsObserver::Counters MetricsObserver::CountersOf(absl::string_view workload_type) {
  Counters counters;
  for (size_t i = 0; i < counters.size(); ++i)
    counters[i] = &metrics_->ai_attempts.With({workload_type, metrics::kAttemptResults[i]});
  return counters;
}

const MetricsObserver::Counters& MetricsObserver::AttemptsOf(const v1beta1::Pod& pod) const {
  if (const std::string* const value = FindLabel(pod, labels_.type_label)) {
    const auto known = attempts_by_label_.find(absl::AsciiStrToLower(*value));
    return known == attempts_by_label_.end() ? attempts_with_other_label_ : known->second;
  }
  return attempts_by_type_[static_cast<size_t>(
      workloads::RecognizeWorkload(pod, workloads::DefaultWorkloadRules()))];
}

void MetricsObserver::OnAlgorithm(const kube::PodObject& pod,
                                  const framework::AlgorithmProfile& profile,
                                  const framework::AlgorithmResult& result,
                                  const v1beta1::PlanResponse& response, absl::Duration elapsed) {
  metrics_->AlgorithmEnded(elapsed);
  const auto count = [&](const std::string& plugin, absl::string_view point) {
    metrics_->plugin_evaluations.With({plugin, point, profile.name}).Increment();
  };
  if (response.outcome_case() == v1beta1::PlanResponse::OUTCOME_NOT_SET) return;
  for (const std::string& plugin : profile.pre_filter_plugins) count(plugin, "PreFilter");
  const v1beta1::CycleEvaluation& evaluation = response.evaluation();
  if (!evaluation.has_filter()) return;
  for (const std::string& plugin : profile.filter_plugins) count(plugin, "Filter");
  if (!evaluation.has_score()) return;
  for (const std::string& plugin : profile.pre_score_plugins) count(plugin, "PreScore");
  for (const v1beta1::PluginScores& scores : evaluation.score().plugins())
    count(scores.plugin(), "Score");
}

void MetricsObserver::OnEventHandled(absl::string_view event, absl::Duration elapsed) {
  if (!event.empty()) metrics::Observe(metrics_->event_handling_duration.With({event}), elapsed);
}

void MetricsObserver::OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                                   scheduler::AttemptResult result, const std::string& node_name,
                                   const std::string& message, absl::Duration since_attempt_began) {
  using metrics::AttemptResult;
  const AttemptResult label =
      result == scheduler::AttemptResult::kScheduled       ? AttemptResult::kScheduled
      : result == scheduler::AttemptResult::kUnschedulable ? AttemptResult::kUnschedulable
                                                           : AttemptResult::kError;
  metrics_->Profile(profile).AttemptEnded(label, since_attempt_began);
  AttemptsOf(pod.pod)[static_cast<size_t>(label)]->Increment();
  gang_waits_.OnTried(pod.uid());
}

void MetricsObserver::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                                   const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  // As in kube-scheduler: preemptions whose victims are all terminating already are not counted.
  if (to_evict > 0) metrics_->preemption_victims.Observe(static_cast<double>(victims.size()));
}

void MetricsObserver::OnBudgetViolations(size_t evictions) {
  metrics_->budget_violations.Increment(static_cast<double>(evictions));
}

void MetricsObserver::OnPreemptionLimited(const kube::PodObject& pod, absl::string_view limit) {
  metrics_->preemptions_limited.With({limit}).Increment();
}

void MetricsObserver::OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
                              absl::Duration since_first_attempt, bool was_flushed) {
  metrics_->PodScheduled(attempts, since_first_attempt);
  if (was_flushed) metrics_->pod_scheduled_after_flush.Increment();
  gang_waits_.OnBound(pod.uid(), GangWaits::BoundBy::kUs);
}

void MetricsObserver::OnBoundElsewhere(const kube::PodObject& pod) {
  gang_waits_.OnBound(pod.uid(), GangWaits::BoundBy::kAnother);
}

void MetricsObserver::OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                                      v1beta1::Code code) {
  metrics::Observe(metrics_->permit_wait_duration.With({CodeName(code)}), waited);
  gang_waits_.OnPermitWaitEnd(pod.uid(), code == v1beta1::CODE_SUCCESS, clock_());
}

void MetricsObserver::OnProtocolError(const std::string& host, const std::string& host_instance,
                                      const absl::Status& status) {
  LOG(WARNING) << "Host instance " << host_instance << " returned no usable answer: " << status;
  // Unavailable or late hosts did not violate the contract.
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    metrics_->host_protocol_errors.With({host}).Increment();
  }
}

void MetricsObserver::OnGuardRefusal(absl::string_view shortage) {
  metrics_->guard_refusals.With({shortage}).Increment();
}

void MetricsObserver::OnFailurePolicy(const std::string& host, v1beta1::ExtensionPoint point,
                                      absl::string_view policy) {
  metrics_->host_failure_policies.With({host, PointName(point), policy}).Increment();
}

void MetricsObserver::OnCall(v1beta1::ExtensionPoint point, const std::string& profile,
                             v1beta1::Code code, absl::Duration elapsed) {
  if (point == v1beta1::EXTENSION_POINT_POST_FILTER) metrics_->preemption_attempts.Increment();
  metrics::Observe(
      metrics_->extension_point_duration.With({PointName(point), CodeName(code), profile}),
      elapsed);
}

void MetricsObserver::OnPod(const kube::PodObject& pod) { gang_waits_.OnQueued(pod.pod, clock_()); }

void MetricsObserver::OnPodLeft(const kube::PodObject& pod) {
  gang_waits_.OnLeft(pod.uid(), clock_());
}

void MetricsObserver::OnIncoming(absl::string_view queue, absl::string_view event) {
  metrics_->queue_incoming_pods.With({queue, event}).Increment();
}

void MetricsObserver::OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                                            int delta) {
  metrics_->unschedulable_pods.With({plugin, profile}).Increment(delta);
}

}  // namespace outboard::shim
