// What the last attempts of each pod saw, for `outboard explain`.
#ifndef OUTBOARD_SHIM_EXPLAIN_ATTEMPT_LOG_H_
#define OUTBOARD_SHIM_EXPLAIN_ATTEMPT_LOG_H_

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
#include "shim/cycle/effects.h"
#include "shim/explain/pod_report.h"

namespace outboard::explain {

// Keeps hosts' answers as they came: at 5,000 nodes an attempt takes some 20 to 50 KiB. Beyond
// `max_bytes` the oldest attempts of any pod are dropped; a pod keeps its last kAttemptsPerPod.
//
// Threading: as a scheduler's observer on its thread; Explain on any.
// Lifetime:  `cluster` points to where the scheduler's state will be known once the scheduler is
//            made; both outlive the log.
// Errors:    NOT_FOUND for a pod of which nothing is kept.
class AttemptLog final : public cycle::Observer {
 public:
  static constexpr size_t kAttemptsPerPod = 3;
  static constexpr size_t kDefaultMaxBytes = size_t{64} << 20;

  explicit AttemptLog(const cycle::ClusterState* const* cluster,
                      size_t max_bytes = kDefaultMaxBytes)
      : cluster_(cluster), max_bytes_(max_bytes) {}

  void OnAlgorithm(const kube::PodObject& pod, const cycle::AlgorithmProfile& profile,
                   const cycle::AlgorithmResult& result, const v1alpha1::CycleResponse& response,
                   absl::Duration elapsed) override;
  void OnPreemption(const kube::PodObject& pod, const std::string& node_name,
                    const std::vector<kube::PodPtr>& victims, size_t to_evict) override;
  void OnAttemptEnd(const kube::PodObject& pod, const std::string& profile,
                    cycle::AttemptResult result, const std::string& node_name,
                    const std::string& message, absl::Duration since_attempt_began) override;

  // `{"pod": "ns/name", "attempts": […]}`, the newest first: each the fields of a PodReport and
  // `uid`, `profile`, `time` (RFC 3339), `snapshotVersion`, `nodes`, `evaluatedNodes`,
  // `feasibleNodes`, `algorithmMicros`, and `placedTogether` where hosts placed several pods at
  // once and said nothing of single nodes. An attempt that is under way has the result "in
  // progress".
  absl::StatusOr<std::string> Explain(const std::string& pod_key) const;

  size_t bytes() const;
  size_t attempts() const;

 private:
  // Names of nodes by slot, as they were; shared by all attempts until nodes come or go.
  struct NodeNames {
    std::vector<std::string> by_slot;  // empty: a free slot
    std::vector<uint32_t> slots;
    uint64_t generation = 0;
    size_t bytes = 0;
  };
  // What the algorithm saw; never changed once made.
  struct Seen {
    std::shared_ptr<const NodeNames> names;
    std::vector<uint32_t> examined_slots;
    std::vector<uint32_t> feasible_positions;
    std::vector<int64_t> totals;
    std::string absent_nodes_reason;
    std::optional<uint32_t> tried_slot;
    v1alpha1::PluginStatus tried_status;
    v1alpha1::FilterResponse filter;
    v1alpha1::ScoreResponse score;
    std::vector<cycle::WeightedPlugin> score_plugins;
    std::vector<std::string> spared_score_plugins;
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
    cycle::AttemptResult result = cycle::AttemptResult::kError;
    std::string node;
    std::string message;
    std::string nominated_node;
    std::vector<std::string> victims;
    std::shared_ptr<const Seen> seen;  // null: the algorithm did not run
    size_t bytes = 0;
  };
  using Records = std::list<Record>;

  std::shared_ptr<const NodeNames> CurrentNames();
  // The attempt at this pod that is under way; null if there is none on record.
  Record* InProgress(const kube::PodObject& pod) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Grow(Record* record, size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Record& Append(Record record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(Records::iterator record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string Render(const std::string& pod_key, const std::vector<Record>& newest_first);

  const cycle::ClusterState* const* const cluster_;
  const size_t max_bytes_;
  std::shared_ptr<const NodeNames> names_;   // the scheduling thread's
  mutable absl::Mutex mutex_;                // held for copies of pointers and short texts only
  Records records_ ABSL_GUARDED_BY(mutex_);  // oldest first
  absl::flat_hash_map<std::string, std::deque<Records::iterator>> by_pod_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace outboard::explain

#endif  // OUTBOARD_SHIM_EXPLAIN_ATTEMPT_LOG_H_
