// Which running pods belong together, and how many of them may leave without the others.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_GANGS_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_GANGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/views.h"

namespace outboard::cost_aware_preemptor {

struct RunningGang {
  // Members that have a node and are not being deleted, in the order of their uids.
  std::vector<sdk::PodRecord*> members;
  // So many of them may leave, and the gang goes on. Zero where nobody can say.
  size_t surplus = 0;
};

// Threading: thread-compatible; the mirror's thread. Lifetime: outlives what it answers by nothing:
// records are the mirror's. Errors: none; who names a group that nobody can read the size of is of
// a gang without surplus.
class Gangs {
 public:
  // `default_size`: of jobs whose pods say none.
  Gangs(std::string plugin, int64_t default_size)
      : index_(std::move(plugin)), default_size_(default_size) {}

  // What a ClusterObserver is told.
  void Clear();
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  void SetObject(const v1alpha1::ClusterObject& object) { index_.SetObject(object); }
  void RemoveObject(const v1alpha1::ClusterObject& object) { index_.RemoveObject(object); }

  // The gang of a running pod, as it is for this preemptor. None: the pod leaves for itself, for it
  // is of no gang or is leaving already.
  std::optional<RunningGang> GangOf(const sdk::PodRecord& pod, const std::string& preemptor_uid,
                                    const sdk::ClusterView& cluster, absl::Time now) const;

  // Why others must not leave for this pod alone, for people: its gang would not be complete with
  // it, and whoever left would have left in vain. Empty: it would, or the pod is of none. Members
  // that wait at Permit do not count: they give up while victims take their time to leave.
  std::string WhyNotAlone(const sdk::PodRecord& pod) const;

  // These are about to be evicted for the preemptor, so that others must not count on their gangs
  // being so large: until it shows, or a minute has passed in which nothing came of it.
  void Promise(const sdk::PreemptionCandidate& candidate, const std::string& preemptor_uid,
               absl::Time now);

 private:
  struct Promised {
    std::string preemptor_uid;
    absl::Time since;
  };
  int64_t SizeOf(const sdk::GroupRef& ref, const sdk::GroupSpec& spec) const;

  sdk::PodGroupIndex index_;
  const int64_t default_size_;
  absl::flat_hash_map<std::string, Promised> promised_;  // by the victim's uid
};

}  // namespace outboard::cost_aware_preemptor

#endif  // OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_GANGS_H_
