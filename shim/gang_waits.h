// How long groups of pods wait until all their members are bound.
#ifndef OUTBOARD_SHIM_GANG_WAITS_H_
#define OUTBOARD_SHIM_GANG_WAITS_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/types.pb.h"
#include "shim/metrics/metrics.h"

namespace outboard::shim {

// Observes gang_scheduling_wait_seconds, for groups in every dialect (proto/workloads). A wait
// begins when the first member is in the queue without scheduling gates. It ends when no member is
// left in the queue; members that come later begin another wait.
//
// - bound: the last member was bound.
// - failed: members that waited at Permit were rejected. Once for each such round of the group,
//   with the time since the wait began; the wait goes on.
// - deleted: the last member was deleted, or left the queue otherwise. Not if no member was ever
//   tried here: another replica schedules them, or nothing could.
//
// Pods of a Job without a number of members, and pods that only a configured label groups, count
// once one of them has waited at Permit: most Jobs place their pods individually.
//
// Threading: thread-compatible.
// Lifetime: the metrics outlive this object. Keeps only groups with members in the queue.
// Errors: ignores pods that it does not know.
class GangWaits {
 public:
  explicit GangWaits(metrics::Metrics* metrics) : metrics_(metrics) {}
  // Labels that name the group of a pod that names none in any dialect; for pods to come.
  void SetJobLabels(std::vector<std::string> labels) { job_labels_ = std::move(labels); }

  // A pod came into the queue, or changed in it.
  void OnQueued(const v1beta1::Pod& pod, absl::Time now);
  // An attempt at it ended.
  void OnTried(const std::string& uid);
  void OnPermitWaitEnd(const std::string& uid, bool allowed, absl::Time now);
  // It is about to leave the queue, because it was bound.
  enum class BoundBy { kUs, kAnother };
  void OnBound(const std::string& uid, BoundBy by);
  // It left the queue.
  void OnLeft(const std::string& uid, absl::Time now);

 private:
  struct Member {
    int failed_in_round = 0;  // the last one
    bool bound = false;
  };
  struct Group {
    std::string ns;
    absl::Time began;
    // A gang for sure.
    bool counts = false;
    bool tried = false;
    // A round ends when a member that failed in it fails again.
    int round = 0;
    absl::flat_hash_map<std::string, Member> waiting;  // by uid
    // A member was bound by this process since the wait began.
    bool bound_here = false;
  };

  // The key of the pod's group; empty: none. `counts`: Group::counts.
  std::string KeyOf(const v1beta1::Pod& pod, bool* counts) const;
  // Null: not in a group.
  Group* Find(const std::string& uid);
  void Observe(const Group& group, absl::string_view result, absl::Time now);

  metrics::Metrics* const metrics_;
  std::vector<std::string> job_labels_;
  absl::flat_hash_map<std::string, Group> groups_;            // by key
  absl::flat_hash_map<std::string, std::string> key_of_pod_;  // by uid, of pods in the queue
  std::set<std::string> namespaces_;                          // with their own label value
};

}  // namespace outboard::shim

#endif  // OUTBOARD_SHIM_GANG_WAITS_H_
