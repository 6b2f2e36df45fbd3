// Reads the metrics of a plugin host beside this process, for the page /metrics/hosts.
#ifndef OUTBOARD_SHIM_HTTP_METRICS_RELAY_H_
#define OUTBOARD_SHIM_HTTP_METRICS_RELAY_H_

#include <atomic>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace outboard::http {

struct MetricsRelayLimits {
  // From connecting to the last byte. Prometheus waits for 10 s.
  absl::Duration timeout = absl::Seconds(5);
  size_t max_bytes = size_t{16} << 20;
  size_t max_header_bytes = size_t{64} << 10;
  // Bounds the memory, and the threads of the server that wait for hosts.
  int max_concurrent = 2;
};

// A host is not trusted: its answer has limits, is not decompressed, and redirects are errors.
//
// Threading: thread-safe; blocks for at most the timeout.
// Errors: UNAVAILABLE without a usable answer; RESOURCE_EXHAUSTED if other reads are in progress.
class MetricsRelay {
 public:
  explicit MetricsRelay(MetricsRelayLimits limits = {}) : limits_(limits) {}

  // The body of http://ADDRESS/metrics. `address` is HOST:PORT.
  absl::StatusOr<std::string> Get(const std::string& address);

 private:
  absl::StatusOr<std::string> Read(const std::string& address) const;

  const MetricsRelayLimits limits_;
  std::atomic<int> in_progress_{0};
};

}  // namespace outboard::http

#endif  // OUTBOARD_SHIM_HTTP_METRICS_RELAY_H_
