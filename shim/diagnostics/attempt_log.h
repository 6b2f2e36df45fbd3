// Records the last attempts at each pod, for `outboard explain`.
#ifndef OUTBOARD_SHIM_DIAGNOSTICS_ATTEMPT_LOG_H_
#define OUTBOARD_SHIM_DIAGNOSTICS_ATTEMPT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/diagnostics/pod_report.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::diagnostics {

// Keeps hosts' answers unchanged: at 5,000 nodes an attempt takes 20 to 50 KiB. Beyond `max_bytes`
// the oldest attempts of any pod are dropped. A pod keeps its last kAttemptsPerPod.
//
// Threading: observer functions on the scheduler's thread; Explain on any thread.
// Lifetime: `*cluster` is set when the scheduler exists; pointer and state outlive the log.
// Errors: NOT_FOUND for a pod without recorded attempts.
class AttemptLog final : public scheduler::Observer {
 public:
  static constexpr size_t kAttemptsPerPod = 3;

  AttemptLog(const cache::ClusterState* const* cluster, size_t max_bytes)
      : cluster_(cluster), max_bytes_(max_bytes) {}

  void OnAlgorithm(const kube::PodObject& pod, const framework::AlgorithmProfile& profile,
                   const framework::AlgorithmResult& result, const v1beta1::PlanResponse& response,
                   absl::Duration elapsed) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    scheduler::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;

  // `{"pod": "ns/name", "attempts": […]}`, the newest first. Each attempt has the fields of a
  // PodReport and `uid`, `profile`, `time` (RFC 3339), `snapshotVersion`, `nodes`,
  // `evaluatedNodes`, `feasibleNodes`, `algorithmMicros`, and `placedTogether` if hosts placed
  // several pods at once and reported no details of nodes. The result of an unfinished attempt is
  // "in progress".
  absl::StatusOr<std::string> Explain(const std::string& pod_key) const;

  size_t bytes() const;
  size_t attempts() const;

 private:
  // Node names by slot at the time of the attempt. Attempts share it until nodes come or go.
  struct NodeNames {
    std::vector<std::string> by_slot;  // empty: free slot
    std::vector<uint32_t> slots;
    uint64_t generation = 0;
    size_t bytes = 0;
  };
  // The algorithm's result. Immutable.
  struct Seen {
    std::shared_ptr<const NodeNames> names;
    std::vector<uint32_t> examined_slots;
    std::vector<uint32_t> feasible_positions;
    std::vector<int64_t> totals;
    std::string absent_nodes_reason;
    std::optional<uint32_t> tried_slot;
    v1beta1::PluginStatus tried_status;
    v1beta1::FilterResponse filter;
    v1beta1::ScoreResponse score;
    std::vector<framework::WeightedPlugin> score_plugins;
    std::vector<std::string> skipped_score_plugins;
    int64_t snapshot_version = 0;
    uint32_t evaluated_nodes = 0;
    uint32_t feasible_nodes = 0;
    bool placed_together = false;
    absl::Duration elapsed;
  };
  struct Record {
    std::string pod;
    std::string uid;
    std::string profile;
    absl::Time time;
    bool ended = false;
    scheduler::AttemptResult result = scheduler::AttemptResult::kError;
    std::string node;
    std::string message;
    std::string nominated_node;
    std::vector<std::string> victims;
    std::shared_ptr<const Seen> seen;  // null: the algorithm did not run
    size_t bytes = 0;
  };
  using Records = std::list<Record>;

  std::shared_ptr<const NodeNames> CurrentNames();
  // The pod's unfinished attempt; null if none is recorded.
  Record* InProgress(const kube::PodObject& pod) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grow(Record* record, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record& Append(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Records::iterator record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string Render(const std::string& pod_key, const std::vector<Record>& newest_first);

  const cache::ClusterState* const* const cluster_;
  const size_t max_bytes_;
  std::shared_ptr<const NodeNames> names_;   // scheduling thread only
  mutable absl::Mutex mutex_;                // held only to copy pointers and short texts
  Records records_ ABSL_GUARDED_BY(mutex_);  // oldest first
  absl::flat_hash_map<std::string, std::deque<Records::iterator>> by_pod_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace outboard::diagnostics

#endif  // OUTBOARD_SHIM_DIAGNOSTICS_ATTEMPT_LOG_H_
