// Metrics of the configuration and its reload; part of names.h.
#ifndef OUTBOARD_SHIM_METRICS_CONFIG_NAMES_H_
#define OUTBOARD_SHIM_METRICS_CONFIG_NAMES_H_

#include "shim/metrics/metric_spec.h"

namespace outboard::metrics {

inline constexpr MetricSpec kConfigReloadSuccessful{
    "outboard_config_last_reload_successful",
    MetricType::kGauge,
    {},
    {},
    "1 if the configuration file is in force; 0 if it was refused and an earlier configuration "
    "runs."};
inline constexpr MetricSpec kConfigReloadTime{
    "outboard_config_last_reload_success_timestamp_seconds",
    MetricType::kGauge,
    {},
    {},
    "When the configuration in force was loaded, seconds since the Unix epoch."};
inline constexpr MetricSpec kConfigInfo{
    "outboard_config_info",
    MetricType::kGauge,
    {"hash"},
    {},
    "1 for the file whose configuration is in force, by the hash of its text: sha256:HEX."};
inline constexpr MetricSpec kConfigRestartRequired{
    "outboard_config_restart_required",
    MetricType::kGauge,
    {},
    {},
    "1 if fields of the configuration file wait for a restart; the log and an event name them."};
inline constexpr MetricSpec kUnknownProfilePods{
    "outboard_pods_of_unknown_profiles",
    MetricType::kGauge,
    {"scheduler"},
    {},
    "Pods that wait for a schedulerName that looks like a profile of this installation, but is "
    "none. Names beyond the first 20 are labelled other."};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_CONFIG_NAMES_H_
