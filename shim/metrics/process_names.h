// The metrics of every process. Part of names.h.
#ifndef OUTBOARD_SHIM_METRICS_PROCESS_NAMES_H_
#define OUTBOARD_SHIM_METRICS_PROCESS_NAMES_H_

#include "shim/metrics/metric_spec.h"

namespace outboard::metrics {

// Standard metrics of Prometheus clients, read when scraped.
inline constexpr MetricSpec kProcessCpu{"process_cpu_seconds_total",
                                        MetricType::kCounter,
                                        {},
                                        {},
                                        "User and system CPU time of the process."};
inline constexpr MetricSpec kProcessRss{
    "process_resident_memory_bytes", MetricType::kGauge, {}, {}, "Resident memory of the process."};
inline constexpr MetricSpec kProcessFds{
    "process_open_fds", MetricType::kGauge, {}, {}, "Open file descriptors of the process."};
inline constexpr MetricSpec kProcessStart{"process_start_time_seconds",
                                          MetricType::kGauge,
                                          {},
                                          {},
                                          "Start of the process, seconds since the Unix epoch."};
inline constexpr MetricSpec kLogLinesDropped{
    "outboard_log_lines_dropped_total",
    MetricType::kCounter,
    {},
    {},
    "Log lines dropped because stderr took none: its reader stopped, or its disk is full."};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_PROCESS_NAMES_H_
