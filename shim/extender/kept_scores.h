// What Filter has learned, for the Prioritize of the same cycle.
#ifndef OUTBOARD_SHIM_EXTENDER_KEPT_SCORES_H_
#define OUTBOARD_SHIM_EXTENDER_KEPT_SCORES_H_

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

// kube-scheduler scores with the snapshot that it has filtered with, and so do we: what hosts have
// said to Filter holds for the Prioritize that follows, whatever the watch has brought since. So
// the scores are those among the nodes that Filter was asked about.
//
// Threading: thread-safe. Errors: none; what is not kept is asked again.
class KeptScores {
 public:
  void Keep(const NodesQuestion& question, const NodesAnswer& answer, absl::Time now);
  // One score a node of the question, if all of them were kept a moment ago; whatever was kept of
  // the pod is forgotten.
  std::optional<std::vector<int64_t>> Take(const NodesQuestion& question, absl::Time now);

 private:
  struct Kept {
    absl::Time when;
    std::vector<std::string> names;  // of nodes, as Filter was asked
    std::vector<int64_t> scores;     // of each
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Kept> by_uid_ ABSL_GUARDED_BY(mutex_);  // of the pod
  std::deque<std::string> uids_ ABSL_GUARDED_BY(mutex_);                   // the oldest first
};

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_KEPT_SCORES_H_
