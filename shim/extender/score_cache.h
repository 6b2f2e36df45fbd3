// Scores from Filter, for the Prioritize of the same cycle.
#ifndef OUTBOARD_SHIM_EXTENDER_SCORE_CACHE_H_
#define OUTBOARD_SHIM_EXTENDER_SCORE_CACHE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "shim/extender/messages.h"

namespace outboard::extender {

// kube-scheduler scores with the snapshot that it filtered with, and so does the extender: the
// hosts' answers at Filter are valid for the following Prioritize, whatever the watch has received
// since. Therefore the scores are relative to the nodes of the Filter request.
//
// Threading: thread-safe.
// Errors: none; missing scores are requested again.
class ScoreCache {
 public:
  void Keep(const NodesQuestion& question, const NodesAnswer& answer, absl::Time now);
  // One score per node of the question if all of them were stored recently. Removes the pod's
  // entry.
  std::optional<std::vector<int64_t>> Take(const NodesQuestion& question, absl::Time now);

 private:
  struct Kept {
    absl::Time when;
    std::vector<std::string> names;  // nodes of the Filter request
    std::vector<int64_t> scores;     // one per node
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Kept> by_uid_ ABSL_GUARDED_BY(mutex_);  // by the pod's uid
  std::deque<std::string> uids_ ABSL_GUARDED_BY(mutex_);                   // oldest first
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_SCORE_CACHE_H_
