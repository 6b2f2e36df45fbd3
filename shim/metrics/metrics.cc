#include "shim/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "shim/metrics/process_metrics.h"

namespace outboard::metrics {
namespace {

std::vector<double> Bounds(const Buckets& buckets) {
  if (buckets.bounds[0] > 0)
    return {buckets.bounds.begin(), buckets.bounds.begin() + buckets.count};
  std::vector<double> bounds;
  double bound = buckets.start;
  for (int i = 0; i < buckets.count; ++i, bound *= buckets.factor) bounds.push_back(bound);
  return bounds;
}

template <typename T>
prometheus::Family<T>& MakeFamily(prometheus::Registry& registry, const MetricSpec& spec);
template <>
prometheus::Family<Counter>& MakeFamily(prometheus::Registry& registry, const MetricSpec& spec) {
  return prometheus::BuildCounter().Name(spec.name).Help(spec.help).Register(registry);
}
template <>
prometheus::Family<Gauge>& MakeFamily(prometheus::Registry& registry, const MetricSpec& spec) {
  return prometheus::BuildGauge().Name(spec.name).Help(spec.help).Register(registry);
}
template <>
prometheus::Family<Histogram>& MakeFamily(prometheus::Registry& registry, const MetricSpec& spec) {
  return prometheus::BuildHistogram().Name(spec.name).Help(spec.help).Register(registry);
}

template <typename T>
T& AddChild(prometheus::Family<T>& family, const MetricSpec& spec,
            const prometheus::Labels& labels) {
  if constexpr (std::is_same_v<T, Histogram>) {
    return family.Add(labels, Bounds(spec.buckets));
  } else {
    return family.Add(labels);
  }
}

template <typename T>
T& Single(prometheus::Registry& registry, const MetricSpec& spec) {
  return AddChild(MakeFamily<T>(registry, spec), spec, {});
}

}  // namespace

template <typename T>
Children<T>::Children(prometheus::Registry& registry, const MetricSpec& spec)
    : spec_(spec), family_(MakeFamily<T>(registry, spec)) {}

template <typename T>
T& Children<T>::With(std::initializer_list<absl::string_view> labels) {
  std::string key;
  for (absl::string_view label : labels) absl::StrAppend(&key, label, absl::string_view("\0", 1));
  absl::MutexLock lock(&mutex_);
  T*& child = children_[key];
  if (child == nullptr) {
    prometheus::Labels named;
    size_t i = 0;
    for (absl::string_view label : labels) {
      // Excess labels are a bug of the caller and are ignored.
      if (i < spec_.labels.size() && spec_.labels[i] != nullptr)
        named.emplace(spec_.labels[i], std::string(label));
      ++i;
    }
    child = &AddChild(family_, spec_, named);
  }
  return *child;
}

template <typename T>
void Children<T>::Clear() {
  absl::MutexLock lock(&mutex_);
  for (auto& [key, child] : children_) family_.Remove(child);
  children_.clear();
}

template class Children<Counter>;
template class Children<Gauge>;
template class Children<Histogram>;

Metrics::Metrics(absl::string_view version)
    : registry_(std::make_shared<prometheus::Registry>()),
      schedule_attempts(*registry_, kScheduleAttempts),
      attempt_duration(*registry_, kAttemptDuration),
      algorithm_duration(Single<Histogram>(*registry_, kAlgorithmDuration)),
      fine_algorithm_duration(Single<Histogram>(*registry_, kFineAlgorithmDuration)),
      event_handling_duration(*registry_, kEventHandlingDuration),
      preemption_victims(Single<Histogram>(*registry_, kPreemptionVictims)),
      preemption_attempts(Single<Counter>(*registry_, kPreemptionAttempts)),
      pending_pods_by_queue(*registry_, kPendingPods),
      pending_active(pending_pods_by_queue.With({"active"})),
      pending_backoff(pending_pods_by_queue.With({"backoff"})),
      pending_unschedulable(pending_pods_by_queue.With({"unschedulable"})),
      pending_gated(pending_pods_by_queue.With({"gated"})),
      in_flight_events(*registry_, kInFlightEvents),
      pod_scheduling_sli_duration(*registry_, kPodSchedulingSliDuration),
      pod_scheduling_attempts(Single<Histogram>(*registry_, kPodSchedulingAttempts)),
      pod_scheduled_after_flush(Single<Counter>(*registry_, kPodScheduledAfterFlush)),
      extension_point_duration(*registry_, kExtensionPointDuration),
      queue_incoming_pods(*registry_, kQueueIncomingPods),
      permit_wait_duration(*registry_, kPermitWaitDuration),
      cache_size(*registry_, kCacheSize),
      cache_nodes(cache_size.With({"nodes"})),
      cache_pods(cache_size.With({"pods"})),
      cache_assumed_pods(cache_size.With({"assumed_pods"})),
      unschedulable_pods(*registry_, kUnschedulablePods),
      plugin_evaluations(*registry_, kPluginEvaluations),
      client_requests(*registry_, kClientRequests),
      client_request_duration(*registry_, kClientRequestDuration),
      leader(*registry_, kLeader),
      host_call_duration(*registry_, kHostCallDuration),
      host_evaluation_duration(*registry_, kHostEvaluationDuration),
      host_calls(*registry_, kHostCalls),
      host_protocol_errors(*registry_, kHostProtocolErrors),
      host_failure_policies(*registry_, kHostFailurePolicies),
      hosts_ready(Single<Gauge>(*registry_, kHostsReady)),
      host_state(*registry_, kHostState),
      host_info(*registry_, kHostInfo),
      host_switches(*registry_, kHostSwitches),
      host_acked_version(*registry_, kHostAckedVersion),
      snapshot_version(Single<Gauge>(*registry_, kSnapshotVersion)),
      parked_pods(Single<Gauge>(*registry_, kParkedPods)),
      guard_refusals(*registry_, kGuardRefusals),
      preemptions_limited(*registry_, kPreemptionsLimited),
      budget_violations(Single<Counter>(*registry_, kBudgetViolations)),
      binds_in_flight(Single<Gauge>(*registry_, kBindsInFlight)),
      binds(*registry_, kBinds),
      effects(*registry_, kEffects),
      binds_settled_by_read(Single<Counter>(*registry_, kBindsSettledByRead)),
      bindings_denied(Single<Counter>(*registry_, kBindingsDenied)),
      bind_duration(Single<Histogram>(*registry_, kBindDuration)),
      status_patches(*registry_, kStatusPatches),
      events(*registry_, kEvents),
      events_queued(Single<Gauge>(*registry_, kEventsQueued)),
      informer_objects(*registry_, kInformerObjects),
      informer_undecoded_objects(*registry_, kInformerUndecodedObjects),
      informer_events(*registry_, kInformerEvents),
      informer_lists(*registry_, kInformerLists),
      ai_attempts(*registry_, kAiAttempts),
      gang_wait(*registry_, kGangWait),
      serving_certificate_reloads(*registry_, kServingCertificateReloads),
      http_authorization(*registry_, kHttpAuthorization),
      extender_duration(*registry_, kExtenderDuration),
      config_reload_successful(Single<Gauge>(*registry_, kConfigReloadSuccessful)),
      config_reload_time(Single<Gauge>(*registry_, kConfigReloadTime)),
      config_info(*registry_, kConfigInfo),
      config_restart_required(Single<Gauge>(*registry_, kConfigRestartRequired)),
      unknown_profile_pods(*registry_, kUnknownProfilePods) {
  AddChild(MakeFamily<Gauge>(*registry_, kBuildInfo), kBuildInfo,
           {{"version", std::string(version)}})
      .Set(1);
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : ProcessMetrics().Collect())
    families.push_back(std::move(family));
  for (prometheus::MetricFamily& family : certificates.Collect())
    families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

ProfileMetrics& Metrics::Profile(absl::string_view name) {
  absl::MutexLock lock(&mutex_);
  std::unique_ptr<ProfileMetrics>& profile = profiles_[std::string(name)];
  if (profile == nullptr) {
    profile = std::make_unique<ProfileMetrics>();
    for (size_t i = 0; i < kAttemptResults.size(); ++i) {
      profile->attempts[i] = &schedule_attempts.With({kAttemptResults[i], name});
      profile->attempt_duration[i] = &attempt_duration.With({kAttemptResults[i], name});
    }
  }
  return *profile;
}

void Metrics::PodScheduled(int attempts, absl::Duration since_queued) {
  pod_scheduling_attempts.Observe(attempts);
  Observe(pod_scheduling_sli_duration.With({attempts >= 15 ? "15+" : absl::StrCat(attempts)}),
          since_queued);
}

}  // namespace outboard::metrics
