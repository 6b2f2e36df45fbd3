// Reads Prometheus periodically, on its own thread.
#ifndef OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_
#define OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/metrics.h"
#include "plugin_host/sdk/prometheus/client.h"
#include "plugin_host/sdk/prometheus/periodic_reader.h"
#include "plugins/gpu_load/load_query.h"

namespace outboard::gpu_load {

struct ReaderOptions {
  prometheus::ServerOptions server;
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

// Publishes a snapshot after each reading. A failed reading publishes nothing, so samples grow old.
//
// Threading: thread-safe.
// Lifetime: the destructor cancels a running query.
// Errors: none; see the metric and the log.
class LoadReader : public LoadSource {
 public:
  LoadReader(ReaderOptions options, sdk::Metrics* metrics);
  LoadReader(const LoadReader&) = delete;
  LoadReader& operator=(const LoadReader&) = delete;

  // The process's shared reader with these options, while it is referenced: profiles, sessions and
  // a reloaded configuration share it and its state.
  static std::shared_ptr<LoadSource> Shared(const ReaderOptions& options, sdk::Metrics* metrics);

  std::shared_ptr<const LoadSnapshot> Latest() const override;

 private:
  struct Sighting {
    std::vector<std::string> names;
    std::string gpu;
    int64_t code = 0;
    absl::Time last;
    bool shown = false;  // In the latest reading.
  };

  absl::Status Publish(absl::Time asked, const std::vector<prometheus::Sample>& samples);
  std::vector<Veto> VetoesAfter(absl::Time asked, std::vector<GpuXid> xids);

  const ReaderOptions options_;
  // By names and GPU; used only by the reader's thread.
  std::map<std::vector<std::string>, Sighting> sightings_;
  mutable absl::Mutex mutex_;
  std::shared_ptr<const LoadSnapshot> latest_ ABSL_GUARDED_BY(mutex_);
  prometheus::PeriodicReader reader_;  // Last member: it uses the others.
};

}  // namespace outboard::gpu_load

#endif  // OUTBOARD_PLUGINS_GPU_LOAD_LOAD_READER_H_
