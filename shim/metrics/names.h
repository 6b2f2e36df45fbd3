// Every metric of the shim, once. README.md has the same table for people; a test compares them.
#ifndef OUTBOARD_SHIM_METRICS_NAMES_H_
#define OUTBOARD_SHIM_METRICS_NAMES_H_

#include <vector>

#include "shim/metrics/metric_spec.h"
#include "shim/metrics/process_names.h"
#include "shim/metrics/serving_names.h"

namespace outboard::metrics {

// kube-scheduler's.
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
    "Number of events that the queue keeps for pods being scheduled."};
inline constexpr MetricSpec kPodSchedulingSliDuration{
    "scheduler_pod_scheduling_sli_duration_seconds",
    MetricType::kHistogram,
    {"attempts"},
    {0.01, 2, 20},
    "Time from a pod's entry into the queue until it is bound, over all its attempts; gated time "
    "is not counted."};
inline constexpr MetricSpec kPodSchedulingAttempts{
    "scheduler_pod_scheduling_attempts",
    MetricType::kHistogram,
    {},
    {1, 2, 5},
    "Number of attempts that it took to schedule a pod."};
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
    "Number of attempts in which a plugin was asked, at PreFilter, Filter, PreScore and Score."};

// As in client-go and component-base.
inline constexpr MetricSpec kClientRequests{
    "rest_client_requests_total",
    MetricType::kCounter,
    {"code", "method", "host"},
    {},
    "Number of requests to the API server; code is <error> where no answer came."};
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

// Our own.
inline constexpr MetricSpec kFineAlgorithmDuration{
    "outboard_algorithm_duration_seconds",
    MetricType::kHistogram,
    {},
    {0.00001, 1.25, 60},
    "As scheduler_scheduling_algorithm_duration_seconds, in buckets fine enough to read a median "
    "of 100 us."};
inline constexpr MetricSpec kHostCallDuration{
    "outboard_host_call_duration_seconds",
    MetricType::kHistogram,
    {"host", "call"},
    {0.00001, 1.5, 32},
    "Latency of calls of a plugin host, seen from the shim."};
inline constexpr MetricSpec kHostCalls{"outboard_host_calls_total",
                                       MetricType::kCounter,
                                       {"host", "call", "result"},
                                       {},
                                       "Calls of a plugin host by result: OK, or a status code."};
inline constexpr MetricSpec kHostProtocolErrors{
    "outboard_host_protocol_errors_total",
    MetricType::kCounter,
    {"host"},
    {},
    "Answers of a plugin host that broke the contract."};
inline constexpr MetricSpec kHostFailurePolicies{
    "outboard_host_failure_policies_total",
    MetricType::kCounter,
    {"host", "extension_point", "policy"},
    {},
    "Attempts that went on without a host's answer, by the policy: FailOpen, UseLast."};
inline constexpr MetricSpec kHostState{
    "outboard_host_state",
    MetricType::kGauge,
    {"host", "instance", "state"},
    {},
    "1 for the state that an instance of a host is in (outboard hosts --help)."};
inline constexpr MetricSpec kHostInfo{"outboard_host_info",
                                      MetricType::kGauge,
                                      {"host", "instance", "build", "digest"},
                                      {},
                                      "1 for the instance that serves."};
inline constexpr MetricSpec kHostSwitches{
    "outboard_host_switches_total",
    MetricType::kCounter,
    {"host", "reason"},
    {},
    "Times that another instance came to serve: newer, lost, draining, rollback, person."};
inline constexpr MetricSpec kHostAckedVersion{"outboard_host_acked_version",
                                              MetricType::kGauge,
                                              {"host"},
                                              {},
                                              "Version that the host's mirror has acknowledged."};
inline constexpr MetricSpec kSnapshotVersion{"outboard_snapshot_version",
                                             MetricType::kGauge,
                                             {},
                                             {},
                                             "Version of the shim's picture of the cluster."};
inline constexpr MetricSpec kPluginFailures{
    "outboard_plugin_failures_total",
    MetricType::kCounter,
    {"plugin", "policy"},
    {},
    "Times that a plugin gave no usable answer, by the policy that was applied."};
inline constexpr MetricSpec kParkedPods{"outboard_parked_pods",
                                        MetricType::kGauge,
                                        {},
                                        {},
                                        "Number of pods set aside until a host answers again."};
inline constexpr MetricSpec kGuardRefusals{
    "outboard_guard_refusals_total",
    MetricType::kCounter,
    {"reason"},
    {},
    "Placements that the shim refused because the node has no room for them."};
inline constexpr MetricSpec kBindsInFlight{"outboard_binds_in_flight",
                                           MetricType::kGauge,
                                           {},
                                           {},
                                           "Bindings queued or sent that have not ended."};
inline constexpr MetricSpec kBinds{"outboard_binds_total",
                                   MetricType::kCounter,
                                   {"outcome"},
                                   {},
                                   "Bindings that ended: bound, not_bound, gone, fenced, no_room, "
                                   "unknown."};
inline constexpr MetricSpec kEffects{"outboard_effects_total",
                                     MetricType::kCounter,
                                     {"plugin", "result"},
                                     {},
                                     "What plugins had written: carried_out, failed."};
inline constexpr MetricSpec kBindsObjected{
    "outboard_binds_objected_total",
    MetricType::kCounter,
    {},
    {},
    "Binds by other schedulers that the API server asked about and that would have overcommitted "
    "a node."};
inline constexpr MetricSpec kBindsSettledByRead{"outboard_binds_settled_by_read_total",
                                                MetricType::kCounter,
                                                {},
                                                {},
                                                "Bindings whose fate had to be read back."};
inline constexpr MetricSpec kBindDuration{"outboard_bind_duration_seconds",
                                          MetricType::kHistogram,
                                          {},
                                          {0.0005, 2, 16},
                                          "Latency of a binding, retries included."};
inline constexpr MetricSpec kStatusPatches{"outboard_status_patches_total",
                                           MetricType::kCounter,
                                           {"result"},
                                           {},
                                           "Patches of pod status: written, failed, dropped."};
inline constexpr MetricSpec kEvents{
    "outboard_events_total",
    MetricType::kCounter,
    {"result"},
    {},
    "Events: written, merged into a series, rejected, dropped because the queue was full."};
inline constexpr MetricSpec kEventsQueued{
    "outboard_events_queued", MetricType::kGauge, {}, {}, "Events that wait to be written."};
inline constexpr MetricSpec kInformerObjects{"outboard_informer_objects",
                                             MetricType::kGauge,
                                             {"kind"},
                                             {},
                                             "Objects that an informer keeps."};
inline constexpr MetricSpec kInformerEvents{"outboard_informer_events_total",
                                            MetricType::kCounter,
                                            {"kind", "type"},
                                            {},
                                            "Watch events by kind and type."};
inline constexpr MetricSpec kInformerLists{
    "outboard_informer_lists_total",
    MetricType::kCounter,
    {"kind", "reason"},
    {},
    "Times that an informer listed from scratch, by reason."};
// For clusters with AI workloads, by labels of pods.
inline constexpr MetricSpec kAiAttempts{
    "ai_scheduler_attempts_total",
    MetricType::kCounter,
    {"workload_type", "result"},
    {},
    "Attempts by the pod's label workload-type and the result."};
inline constexpr MetricSpec kGangWait{
    "gang_scheduling_wait_seconds",
    MetricType::kHistogram,
    {"job_name"},
    {0, 0, 5, {10, 30, 60, 300, 600}},
    "Time that a member of a gang waited at Permit; jobs beyond the first 100 are other."};
inline constexpr MetricSpec kExtenderDuration{"outboard_extender_request_duration_seconds",
                                              MetricType::kHistogram,
                                              {"verb", "result"},
                                              {0.0001, 2, 16},
                                              "Latency of a request of kube-scheduler's, from its "
                                              "last byte to the answer, by verb and result: "
                                              "answered, failed, malformed."};
inline constexpr MetricSpec kBuildInfo{
    "outboard_build_info", MetricType::kGauge, {"version"}, {}, "1 for the build that runs."};

// All of the above, those of serving_names.h, and the process's own.
const std::vector<const MetricSpec*>& AllMetrics();

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_NAMES_H_
