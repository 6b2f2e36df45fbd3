// Metrics of the HTTPS endpoints; part of names.h.
#ifndef OUTBOARD_SHIM_METRICS_SERVING_NAMES_H_
#define OUTBOARD_SHIM_METRICS_SERVING_NAMES_H_

#include "shim/metrics/metric_spec.h"

namespace outboard::metrics {

inline constexpr MetricSpec kServingCertificateReloads{
    "outboard_serving_certificate_reloads_total",
    MetricType::kCounter,
    {"result"},
    {},
    "Times that the files of the serving certificate had changed: reloaded, or failed and what was "
    "there kept."};
inline constexpr MetricSpec kPageVerdicts{
    "outboard_page_verdicts_total",
    MetricType::kCounter,
    {"verdict"},
    {},
    "Requests for pages over HTTPS by the verdict: allowed, unauthenticated, forbidden, "
    "unavailable."};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_SERVING_NAMES_H_
