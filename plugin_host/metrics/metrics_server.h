// Serves the host's metrics over HTTP.
#ifndef OUTBOARD_PLUGIN_HOST_METRICS_METRICS_SERVER_H_
#define OUTBOARD_PLUGIN_HOST_METRICS_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "plugin_host/metrics/prometheus_metrics.h"

namespace outboard::host_metrics {

// GET /metrics on its own thread, one request at a time, 2 s to read or write. Loopback only,
// unless the caller wants otherwise, because it has neither TLS nor authorisation.
//
// Threading: Start and the destructor on one thread.
// Lifetime:  serves until destroyed; `metrics` outlives it.
// Errors: Start: INVALID_ARGUMENT for an address that is not a loopback HOST:PORT (`unprotected`:
//         IP:PORT), UNAVAILABLE if it cannot listen there.
class MetricsServer {
 public:
  // `127.0.0.1:PORT`, `[::1]:PORT`; port 0: any free port.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address,
                                                              const PrometheusMetrics* metrics,
                                                              bool unprotected = false);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // The actual HOST:PORT.
  const std::string& address() const { return address_; }

 private:
  struct Impl;
  MetricsServer();
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace outboard::host_metrics

#endif  // OUTBOARD_PLUGIN_HOST_METRICS_METRICS_SERVER_H_
