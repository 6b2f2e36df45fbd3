#include "shim/metrics_observer.h"

#include <glog/logging.h>

#include "absl/strings/match.h"

namespace outboard::shim {
namespace {

// kube-scheduler's names of the codes.
const char* CodeName(v1alpha1::Code code) {
  switch (code) {
    case v1alpha1::SUCCESS:
      return "Success";
    case v1alpha1::UNSCHEDULABLE:
      return "Unschedulable";
    case v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE:
      return "UnschedulableAndUnresolvable";
    case v1alpha1::WAIT:
      return "Wait";
    case v1alpha1::SKIP:
      return "Skip";
    case v1alpha1::PENDING:
      return "Pending";
    default:
      return "Error";
  }
}

const char* PointName(v1alpha1::ExtensionPoint point) {
  switch (point) {
    case v1alpha1::POST_FILTER:
      return "PostFilter";
    case v1alpha1::RESERVE:
      return "Reserve";
    case v1alpha1::PERMIT:
      return "Permit";
    default:
      return "Bind";
  }
}

constexpr size_t kMaxGangJobs = 100;

const std::string* FindLabel(const v1alpha1::Pod& pod, const char* key) {
  const auto found = pod.labels().find(key);
  return found == pod.labels().end() ? nullptr : &found->second;
}

// The user's `workload-type` label. All unknown values share one label value.
absl::string_view WorkloadType(const v1alpha1::Pod& pod) {
  const std::string* type = FindLabel(pod, "workload-type");
  if (type == nullptr) return "none";
  for (const absl::string_view known :
       {"training", "inference", "batch", "CPU-intensive", "GPU-intensive"}) {
    if (absl::EqualsIgnoreCase(*type, known)) return known;
  }
  return "other";
}

// The pod's job or group. Empty: the pod has none.
std::string JobName(const v1alpha1::Pod& pod) {
  if (!pod.pod_group_name().empty()) return pod.pod_group_name();
  for (const char* key : {"job-name", "batch.kubernetes.io/job-name",
                          "scheduling.x-k8s.io/pod-group", "training-job-id"}) {
    if (const std::string* name = FindLabel(pod, key)) return *name;
  }
  return "";
}

}  // namespace

void MetricsObserver::OnAlgorithm(const kube::PodObject& pod,
                                  const framework::AlgorithmProfile& profile,
                                  const framework::AlgorithmResult& result,
                                  const v1alpha1::CycleResponse& response, absl::Duration elapsed) {
  metrics_->AlgorithmEnded(elapsed);
  const auto count = [&](const std::string& plugin, absl::string_view point) {
    metrics_->plugin_evaluations.With({plugin, point, profile.name}).Increment();
  };
  if (!response.has_pre_filter()) return;
  for (const std::string& plugin : profile.pre_filter_plugins) count(plugin, "PreFilter");
  if (!response.has_filter()) return;
  for (const std::string& plugin : profile.filter_plugins) count(plugin, "Filter");
  if (!response.has_score()) return;
  for (const std::string& plugin : profile.pre_score_plugins) count(plugin, "PreScore");
  for (const v1alpha1::PluginScores& scores : response.score().plugins())
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
  metrics_->ai_attempts
      .With({WorkloadType(pod.pod), metrics::kAttemptResults[static_cast<size_t>(label)]})
      .Increment();
}

void MetricsObserver::OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                                   const std::vector<kube::PodPtr>& victims, size_t to_evict) {
  // As in kube-scheduler: preemptions whose victims are all terminating already are not counted.
  if (to_evict > 0) metrics_->preemption_victims.Observe(static_cast<double>(victims.size()));
}

void MetricsObserver::OnBound(const kube::PodObject& pod, const std::string& profile, int attempts,
                              absl::Duration since_first_attempt, bool was_flushed) {
  metrics_->PodScheduled(attempts, since_first_attempt);
  if (was_flushed) metrics_->pod_scheduled_after_flush.Increment();
}

void MetricsObserver::OnPermitWaitEnd(const kube::PodObject& pod, absl::Duration waited,
                                      v1alpha1::Code code) {
  metrics::Observe(metrics_->permit_wait_duration.With({CodeName(code)}), waited);
  const std::string job = JobName(pod.pod);
  if (job.empty()) return;
  const bool known = gang_jobs_.contains(job);
  if (!known && gang_jobs_.size() < kMaxGangJobs) gang_jobs_.insert(job);
  metrics::Observe(metrics_->gang_wait.With({gang_jobs_.contains(job) ? job : "other"}), waited);
}

void MetricsObserver::OnProtocolError(const std::string& host_instance,
                                      const absl::Status& status) {
  LOG(WARNING) << "Host instance " << host_instance << " returned no usable answer: " << status;
  // Unavailable or late hosts did not violate the contract.
  if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    metrics_->host_protocol_errors.With({host_instance}).Increment();
  }
}

void MetricsObserver::OnFailurePolicy(const std::string& host, v1alpha1::ExtensionPoint point,
                                      absl::string_view policy) {
  metrics_->host_failure_policies.With({host, PointName(point), policy}).Increment();
}

void MetricsObserver::OnCall(v1alpha1::ExtensionPoint point, const std::string& profile,
                             v1alpha1::Code code, absl::Duration elapsed) {
  if (point == v1alpha1::POST_FILTER) metrics_->preemption_attempts.Increment();
  metrics::Observe(
      metrics_->extension_point_duration.With({PointName(point), CodeName(code), profile}),
      elapsed);
}

void MetricsObserver::OnIncoming(absl::string_view queue, absl::string_view event) {
  metrics_->queue_incoming_pods.With({queue, event}).Increment();
}

void MetricsObserver::OnUnschedulableReason(const std::string& plugin, const std::string& profile,
                                            int delta) {
  metrics_->unschedulable_pods.With({plugin, profile}).Increment(delta);
}

void MetricsObserver::UpdateHosts(const hosts::HostRegistry& hosts) {
  metrics_->host_state.Clear();
  metrics_->host_info.Clear();
  metrics_->host_acked_version.Clear();
  for (const hosts::HostRegistry::View& view : hosts.Describe()) {
    metrics_->host_state.With({view.host, view.instance, hosts::StateName(view.state)}).Set(1);
    if (view.state != hosts::InstanceState::kServing) continue;
    metrics_->host_info.With({view.host, view.instance, view.build, view.build_digest}).Set(1);
    metrics_->host_acked_version.With({view.host})
        .Set(static_cast<double>(view.acknowledged_version));
  }
  for (const auto& [key, count] : hosts.switches()) {
    int64_t& counted = counted_switches_[key];
    metrics_->host_switches.With({key.first, key.second})
        .Increment(static_cast<double>(count - counted));
    counted = count;
  }
}

void MetricsObserver::UpdateGauges(const scheduler::Scheduler& scheduler,
                                   const cache::ClusterState& cluster) {
  const queue::QueueCounts counts = scheduler.queue().counts();
  metrics_->pending_active.Set(static_cast<double>(counts.active));
  metrics_->pending_backoff.Set(static_cast<double>(counts.backoff));
  metrics_->pending_unschedulable.Set(static_cast<double>(counts.unschedulable));
  metrics_->pending_gated.Set(static_cast<double>(counts.gated));
  metrics_->parked_pods.Set(static_cast<double>(counts.parked));
  metrics_->cache_nodes.Set(static_cast<double>(cluster.node_count()));
  metrics_->cache_pods.Set(static_cast<double>(cluster.pod_count()));
  metrics_->cache_assumed_pods.Set(static_cast<double>(cluster.assumed_count()));
  metrics_->binds_in_flight.Set(
      static_cast<double>(scheduler.attempts_in_flight() - scheduler.waiting_pods()));
}

}  // namespace outboard::shim
