// Asks Prometheus one query periodically, on its own thread.
#ifndef OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_PERIODIC_READER_H_
#define OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_PERIODIC_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/prometheus/client.h"
#include "plugin_host/sdk/prometheus/samples.h"

namespace outboard::prometheus {

struct ReadOptions {
  ServerOptions server;
  std::string query;  // PromQL.
  // As of Client::Query.
  absl::Duration lookback = absl::ZeroDuration();
  absl::Duration period = absl::Seconds(15);

  friend bool operator==(const ReadOptions&, const ReadOptions&) = default;
};

// How failures are reported.
struct ReportOptions {
  std::string plugin;       // In log lines: "GPULoad",
  std::string what;         // "GPU load",
  std::string consequence;  // "nodes count as neutral once their samples are older than 2m".
  std::string metric;       // A counter of the plugin; its last label is `result`,
  std::vector<std::string> label_values;  // and these are the values of the others.

  friend bool operator==(const ReportOptions&, const ReportOptions&) = default;
};

// Queries, hands the samples over, and waits for the rest of the period. Only the first failure of
// an outage is logged; all readings are counted by result: ok, unreachable, timeout, status,
// too_large, token, malformed, error, no_samples.
//
// Threading: thread-safe.
// Lifetime: the destructor cancels a running query and joins the thread: the last member of a class
//           whose members `on_samples` uses.
// Errors: none; see the metric and the log.
class PeriodicReader {
 public:
  // Called on the reader's thread with each valid answer. `asked` is this machine's time before the
  // query: ages that are computed from it may be too large, never too small. Returns why the plugin
  // cannot use the samples (counted as no_samples), or OK.
  using OnSamples = std::function<absl::Status(absl::Time asked, std::vector<Sample> samples)>;

  // `metrics` is used only here.
  PeriodicReader(ReadOptions options, ReportOptions report, sdk::Metrics* metrics,
                 OnSamples on_samples);
  ~PeriodicReader();
  PeriodicReader(const PeriodicReader&) = delete;
  PeriodicReader& operator=(const PeriodicReader&) = delete;

 private:
  enum class Result {
    kOk,
    kUnreachable,
    kTimeout,
    kStatus,
    kTooLarge,
    kToken,
    kMalformed,
    kError,
    kNoSamples,
    kCount
  };
  static const char* NameOf(Result result);

  void Run();
  void ReadOnce();
  void Ended(Result result, absl::string_view detail);

  const ReadOptions options_;
  const ReportOptions report_;
  const OnSamples on_samples_;
  std::vector<std::shared_ptr<sdk::Counter>> reads_;  // By Result.
  Client client_;
  bool failing_ = false;  // Used only by the thread.

  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last member: it uses the others.
};

}  // namespace outboard::prometheus

#endif  // OUTBOARD_PLUGIN_HOST_SDK_PROMETHEUS_PERIODIC_READER_H_
