// All metrics of the shim. README.md has the same table; a test compares them.
#ifndef OUTBOARD_SHIM_METRICS_NAMES_H_
#define OUTBOARD_SHIM_METRICS_NAMES_H_

#include <vector>

#include "shim/metrics/config_names.h"
#include "shim/metrics/metric_spec.h"
#include "shim/metrics/process_names.h"
#include "shim/metrics/scheduler_names.h"
#include "shim/metrics/serving_names.h"

namespace outboard::metrics {

// Outboard's own metrics.
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
    "Latency of calls of a plugin host's serving instance, seen from the shim; call is the RPC; "
    "Plan counts as Cycle."};
inline constexpr MetricSpec kHostEvaluationDuration{
    "outboard_host_evaluation_duration_seconds",
    MetricType::kHistogram,
    {"host", "call"},
    {0.00001, 1.5, 32},
    "The part of an answered call that the host itself spent, by its own account; the rest of "
    "outboard_host_call_duration_seconds is transport and waiting. Cycle only."};
inline constexpr MetricSpec kHostCalls{
    "outboard_host_calls_total",
    MetricType::kCounter,
    {"host", "call", "result"},
    {},
    "Calls of a plugin host's serving instance by result: OK, or gRPC's code."};
inline constexpr MetricSpec kHostProtocolErrors{
    "outboard_host_protocol_errors_total",
    MetricType::kCounter,
    {"host"},
    {},
    "Answers of a plugin host that violated the contract."};
inline constexpr MetricSpec kHostFailurePolicies{
    "outboard_host_failure_policies_total",
    MetricType::kCounter,
    {"host", "extension_point", "policy"},
    {},
    "Attempts that continued without a host's answer, by the policy: FailOpen, UseLast."};
inline constexpr MetricSpec kHostsReady{
    "outboard_hosts_ready",
    MetricType::kGauge,
    {},
    {},
    "1 while each host that a profile needs has an instance that serves and answers."};
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
inline constexpr MetricSpec kHostSwitches{"outboard_host_switches_total",
                                          MetricType::kCounter,
                                          {"host", "reason"},
                                          {},
                                          "Replacements of the serving instance, by reason: newer, "
                                          "lost, draining, rollback, accepted, manual."};
inline constexpr MetricSpec kHostAckedVersion{"outboard_host_acked_version",
                                              MetricType::kGauge,
                                              {"host"},
                                              {},
                                              "Version that the host's cache has acknowledged."};
inline constexpr MetricSpec kSnapshotVersion{"outboard_snapshot_version",
                                             MetricType::kGauge,
                                             {},
                                             {},
                                             "Version of the shim's snapshot of the cluster."};
inline constexpr MetricSpec kParkedPods{"outboard_parked_pods",
                                        MetricType::kGauge,
                                        {},
                                        {},
                                        "Number of pods parked until a host answers again."};
inline constexpr MetricSpec kGuardRefusals{
    "outboard_guard_refusals_total",
    MetricType::kCounter,
    {"reason"},
    {},
    "Placements and binds that the shim refused because the node has no room for the pod, by what "
    "is short: pods, cpu, memory, ephemeral_storage, extended_resource, host_port, node_gone."};
inline constexpr MetricSpec kPreemptionsLimited{
    "outboard_preemptions_limited_total",
    MetricType::kCounter,
    {"limit"},
    {},
    "Preemptions that were put off because they would have evicted too many pods, by the limit of "
    "the configuration: attempt, minute."};
inline constexpr MetricSpec kBudgetViolations{
    "outboard_preemption_budget_violations_total",
    MetricType::kCounter,
    {},
    {},
    "Evictions for preemptions that break a PodDisruptionBudget, by the shim's own count."};
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
                                     "Writes and events for plugins: applied, failed."};
inline constexpr MetricSpec kBindingsDenied{
    "outboard_bindings_denied_total",
    MetricType::kCounter,
    {},
    {},
    "Binds by other schedulers that the shim denied: the node has no room, or an earlier bind of "
    "the pod may still be executed."};
inline constexpr MetricSpec kBindsSettledByRead{"outboard_binds_settled_by_read_total",
                                                MetricType::kCounter,
                                                {},
                                                {},
                                                "Bindings whose outcome had to be read back."};
inline constexpr MetricSpec kBindDuration{"outboard_bind_duration_seconds",
                                          MetricType::kHistogram,
                                          {},
                                          {0.0005, 2, 16},
                                          "Latency of a binding, retries included."};
inline constexpr MetricSpec kStatusPatches{"outboard_status_patches_total",
                                           MetricType::kCounter,
                                           {"result"},
                                           {},
                                           "Patches of pod status: written, failed, dropped, "
                                           "outdated (of a pod deleted or bound meanwhile)."};
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
                                             {"resource"},
                                             {},
                                             "Objects that an informer keeps."};
inline constexpr MetricSpec kInformerUndecodedObjects{
    "outboard_informer_undecoded_objects",
    MetricType::kGauge,
    {"resource"},
    {},
    "Objects that exist but cannot be decoded: an alarm; the log names each."};
inline constexpr MetricSpec kInformerEvents{"outboard_informer_events_total",
                                            MetricType::kCounter,
                                            {"resource", "type"},
                                            {},
                                            "Watch events by resource and type, those of a first "
                                            "state included."};
inline constexpr MetricSpec kInformerLists{
    "outboard_informer_lists_total",
    MetricType::kCounter,
    {"resource", "reason"},
    {},
    "Complete states that an informer received, by reason: start, expired, rewound, failures."};
// For clusters with AI workloads, by pod labels.
inline constexpr MetricSpec kAiAttempts{
    "ai_scheduler_attempts_total",
    MetricType::kCounter,
    {"workload_type", "result"},
    {},
    "Attempts by the pod's type of workload and the result. The type is the pod's label "
    "(metrics.workloadTypes of the configuration, other), otherwise recognised: training, "
    "inference, batch, service, interactive, none."};
inline constexpr MetricSpec kGangWait{
    "gang_scheduling_wait_seconds",
    MetricType::kHistogram,
    {"namespace", "result"},
    {0, 0, 7, {1, 5, 10, 30, 60, 300, 600}},
    "Time from a group's first member in the queue until all its members are bound, by result: "
    "bound; deleted; failed for each round that Permit rejected, while the wait goes on. "
    "Namespaces "
    "beyond the first 100 are labelled other."};
inline constexpr MetricSpec kExtenderDuration{"outboard_extender_request_duration_seconds",
                                              MetricType::kHistogram,
                                              {"verb", "result"},
                                              {0.0001, 2, 16},
                                              "Latency of a request of kube-scheduler's, from its "
                                              "last byte to the answer, by verb and result: "
                                              "answered, failed, malformed."};
inline constexpr MetricSpec kBuildInfo{
    "outboard_build_info", MetricType::kGauge, {"version"}, {}, "1 for the build that runs."};

// All of the above, and those of the included headers.
const std::vector<const MetricSpec*>& AllMetrics();

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_NAMES_H_
