// What became of the background writes of plugins.
#ifndef OUTBOARD_PLUGIN_HOST_RUNTIME_WRITE_RESULTS_H_
#define OUTBOARD_PLUGIN_HOST_RUNTIME_WRITE_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "plugin_host/runtime/metric_sink.h"

namespace outboard::runtime {

// Numbers the writes that a session pushes, counts their results, and logs a warning for those that
// need one: the first of a key, and again only after a write with this key was applied. A plugin
// repeats a write that failed, and each time it may fail again.
//
// Threading: thread-compatible.
// Lifetime: of a session; `metrics` (may be null) outlives it.
// Errors: none. Results of other numbers are ignored.
class WriteResults {
 public:
  // A shim may never answer: beyond this many, the oldest writes are forgotten.
  static constexpr size_t kMaxPending = 4096;

  explicit WriteResults(MetricSink* metrics) : metrics_(metrics) {}

  // The number of a write that is about to be pushed.
  uint64_t Push(const v1beta1::Effect& effect);
  void Take(const v1beta1::SyncRequest& request);
  // Another stream begins: the old one's results are lost.
  void Reset() { pending_.clear(); }

 private:
  using Write = std::pair<std::string, std::string>;  // plugin and key

  void Count(const std::string& plugin, v1beta1::PushResult::Outcome outcome);
  void Log(const Write& write, const v1beta1::PushResult& result);

  MetricSink* const metrics_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Write> pending_;
  absl::flat_hash_set<Write> warned_;
  // By plugin and outcome.
  absl::flat_hash_map<std::pair<std::string, int>, std::shared_ptr<sdk::Counter>> counters_;
};

}  // namespace outboard::runtime

#endif  // OUTBOARD_PLUGIN_HOST_RUNTIME_WRITE_RESULTS_H_
