// Metrics whose names and meaning are kube-scheduler's and client-go's. Part of names.h.
#ifndef OUTBOARD_SHIM_METRICS_SCHEDULER_NAMES_H_
#define OUTBOARD_SHIM_METRICS_SCHEDULER_NAMES_H_

#include "shim/metrics/metric_spec.h"

namespace outboard::metrics {

// kube-scheduler's metrics.
inline constexpr MetricSpec kScheduleAttempts{
    "scheduler_schedule_attempts_total",
    MetricType::kCounter,
    {"result", "profile"},
    {},
    "Number of attempts to schedule pods, by the result: scheduled, unschedulable, or error for an "
    "internal problem."};
inline constexpr MetricSpec kAttemptDuration{
    "scheduler_scheduling_attempt_duration_seconds",
    MetricType::kHistogram,
    {"result", "profile"},
    {0.001, 2, 15},
    "Latency of a scheduling attempt: algorithm and binding."};
inline constexpr MetricSpec kAlgorithmDuration{
    "scheduler_scheduling_algorithm_duration_seconds",
    MetricType::kHistogram,
    {},
    {0.001, 2, 15},
    "Latency of the scheduling algorithm: PreFilter to Score, calls of hosts included."};
inline constexpr MetricSpec kEventHandlingDuration{"scheduler_event_handling_duration_seconds",
                                                   MetricType::kHistogram,
                                                   {"event"},
                                                   {0.0001, 2, 12},
                                                   "Latency of handling a change in the cluster."};
inline constexpr MetricSpec kPreemptionVictims{"scheduler_preemption_victims",
                                               MetricType::kHistogram,
                                               {},
                                               {1, 2, 7},
                                               "Number of selected preemption victims."};
inline constexpr MetricSpec kPreemptionAttempts{"scheduler_preemption_attempts_total",
                                                MetricType::kCounter,
                                                {},
                                                {},
                                                "Number of preemption attempts."};
inline constexpr MetricSpec kPendingPods{
    "scheduler_pending_pods",
    MetricType::kGauge,
    {"queue"},
    {},
    "Number of pending pods by queue: active, backoff, unschedulable, gated."};
inline constexpr MetricSpec kInFlightEvents{
    "scheduler_inflight_events",
    MetricType::kGauge,
    {"event"},
    {},
    "Number of pods being scheduled that events are kept for (PodPopped), and 1 for each kind of "
    "event that is kept for them."};
inline constexpr MetricSpec kPodSchedulingSliDuration{
    "scheduler_pod_scheduling_sli_duration_seconds",
    MetricType::kHistogram,
    {"attempts"},
    {0.01, 2, 20},
    "Time from a pod's entry into the queue until it is bound, over all its attempts; gated time "
    "is not counted."};
inline constexpr MetricSpec kPodSchedulingAttempts{"scheduler_pod_scheduling_attempts",
                                                   MetricType::kHistogram,
                                                   {},
                                                   {1, 2, 5},
                                                   "Number of attempts needed to schedule a pod."};
inline constexpr MetricSpec kPodScheduledAfterFlush{
    "scheduler_pod_scheduled_after_flush_total",
    MetricType::kCounter,
    {},
    {},
    "Number of pods scheduled after the five-minute flush: events or hints missed them."};
inline constexpr MetricSpec kExtensionPointDuration{
    "scheduler_framework_extension_point_duration_seconds",
    MetricType::kHistogram,
    {"extension_point", "status", "profile"},
    {0.0001, 2, 12},
    "Latency of all plugins of an extension point."};
inline constexpr MetricSpec kQueueIncomingPods{
    "scheduler_queue_incoming_pods_total",
    MetricType::kCounter,
    {"queue", "event"},
    {},
    "Number of pods added to a queue, by queue and event."};
inline constexpr MetricSpec kPermitWaitDuration{"scheduler_permit_wait_duration_seconds",
                                                MetricType::kHistogram,
                                                {"result"},
                                                {0.001, 2, 15},
                                                "Time that pods waited at Permit."};
inline constexpr MetricSpec kCacheSize{
    "scheduler_cache_size",
    MetricType::kGauge,
    {"type"},
    {},
    "Number of nodes, pods and assumed_pods that the scheduler keeps."};
inline constexpr MetricSpec kUnschedulablePods{"scheduler_unschedulable_pods",
                                               MetricType::kGauge,
                                               {"plugin", "profile"},
                                               {},
                                               "Number of unschedulable pods by rejecting plugin; "
                                               "a pod counts for each plugin that rejected it."};
inline constexpr MetricSpec kPluginEvaluations{
    "scheduler_plugin_evaluation_total",
    MetricType::kCounter,
    {"plugin", "extension_point", "profile"},
    {},
    "Number of attempts in which a plugin was called, at PreFilter, Filter, PreScore and Score."};

// As in client-go and component-base.
inline constexpr MetricSpec kClientRequests{
    "rest_client_requests_total",
    MetricType::kCounter,
    {"code", "method", "host"},
    {},
    "Number of requests to the API server; code is <error> without an answer."};
inline constexpr MetricSpec kClientRequestDuration{"rest_client_request_duration_seconds",
                                                   MetricType::kHistogram,
                                                   {"verb", "host"},
                                                   {0.0005, 2, 16},
                                                   "Latency of requests to the API server."};
inline constexpr MetricSpec kLeader{"leader_election_master_status",
                                    MetricType::kGauge,
                                    {"name"},
                                    {},
                                    "1 while this process holds the lease."};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_SCHEDULER_NAMES_H_
