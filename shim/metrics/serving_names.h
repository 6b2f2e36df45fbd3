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
    "Reloads of the serving certificate after its files changed: reloaded, or failed and the "
    "previous one kept."};
inline constexpr MetricSpec kCertificateExpiration{
    "outboard_certificate_expiration_timestamp_seconds",
    MetricType::kGauge,
    {"file"},
    {},
    "When the first certificate of a file of the configuration expires, seconds since the Unix "
    "epoch."};
inline constexpr MetricSpec kHttpAuthorization{
    "outboard_http_authorization_total",
    MetricType::kCounter,
    {"decision"},
    {},
    "Authorizations of requests over HTTPS: allowed, unauthenticated, forbidden, "
    "unavailable."};

}  // namespace outboard::metrics

#endif  // OUTBOARD_SHIM_METRICS_SERVING_NAMES_H_
