// Reads Prometheus periodically, on its own thread.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugins/gpu_load/load_query.h"
#include "plugins/gpu_load/prometheus_client.h"

namespace outboard::gpu_load {

struct ReaderOptions {
  ServerOptions server;
  QueryOptions query;
  absl::Duration period = absl::Seconds(15);
  std::set<int64_t> veto_codes;
  // After a GPU stops showing such a code.
  absl::Duration veto_for = absl::Minutes(5);

  friend bool operator==(const ReaderOptions&, const ReaderOptions&) = default;
};

// A GPU on which no pod should be placed for a while.
struct Veto {
  std::vector<std::string> names;  // As of HostLoad.
  std::string gpu;
  int64_t code = 0;
  absl::Time until;
};

// The result of one reading; immutable. Times are this machine's.
struct LoadSnapshot {
  absl::Time asked;  // Ages of hosts' samples refer to this time.
  std::vector<HostLoad> hosts;
  std::vector<Veto> vetoes;
};

// Where snapshots come from; a seam for tests.
//
// Threading: thread-safe.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // Null before the first reading; the same object until the next one.
  virtual std::shared_ptr<const LoadSnapshot> Latest() const = 0;
};

// Counts readings by result.
inline constexpr char kReadsMetric[] = "outboard_gpu_load_reads_total";

// Queries Prometheus, publishes a snapshot, and waits for the rest of the period. A failed reading
// publishes nothing, so samples grow old. Only the first failure of an outage is logged; all are
// counted.
//
// Threading: thread-safe.
// Lifetime: the destructor cancels a running query and joins the thread.
// Errors: none; see the metric and the log.
class LoadReader : public LoadSource {
 public:
  LoadReader(ReaderOptions options, sdk::Metrics* metrics);
  ~LoadReader() override;
  LoadReader(const LoadReader&) = delete;
  LoadReader& operator=(const LoadReader&) = delete;

  // The process's shared reader with these options, while it is referenced: profiles, sessions and
  // a reloaded configuration share it and its state.
  static std::shared_ptr<LoadSource> Shared(const ReaderOptions& options, sdk::Metrics* metrics);

  std::shared_ptr<const LoadSnapshot> Latest() const override;

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
  struct Sighting {
    std::vector<std::string> names;
    std::string gpu;
    int64_t code = 0;
    absl::Time last;
    bool shown = false;  // In the latest reading.
  };

  void Run();
  void ReadOnce();
  void Publish(absl::Time asked, Reading reading);
  void Ended(Result result, const std::string& detail);

  const ReaderOptions options_;
  std::vector<std::shared_ptr<sdk::Counter>> reads_;  // By Result.
  PrometheusClient client_;

  // Used only by the thread.
  std::map<std::vector<std::string>, Sighting> sightings_;  // By names and GPU.
  bool failing_ = false;
  int64_t failed_ = 0;

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const LoadSnapshot> latest_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // Last member: it uses the others.
};

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_
