// Which running pods form a gang, and how many of them may leave alone.
#ifndef OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_GANGS_H_
#define OUTBOARD_PLUGINS_COST_AWARE_PREEMPTOR_GANGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "plugin_host/sdk/job_gangs.h"
#include "plugin_host/sdk/pod_group_index.h"
#include "plugin_host/sdk/post_filter.h"
#include "plugin_host/sdk/views.h"

namespace outboard::cost_aware_preemptor {

struct RunningGang {
  // Members with a node that are not being deleted, ordered by uid.
  std::vector<sdk::PodRecord*> members;
  // The gang still works without this many members. Zero if its size is unknown.
  size_t surplus = 0;
};

// Threading: thread-compatible; runs on the cluster cache's thread.
// Lifetime: results point to records of the cluster cache.
// Errors: none; a gang whose size cannot be read has no surplus.
class Gangs {
 public:
  // `default_size`: size of jobs whose pods declare none, and that are not gangs by `jobs`.
  Gangs(std::string plugin, int64_t default_size, sdk::JobGangRules jobs, sdk::ClusterView cluster)
      : index_(std::move(plugin), std::move(jobs), cluster), default_size_(default_size) {}

  // Forwarded from a ClusterObserver.
  void Clear();
  void SetPod(const sdk::PodRecord& pod);
  void RemovePod(const sdk::PodRecord& pod);
  void SetObject(const v1beta1::ClusterObject& object) { index_.SetObject(object); }
  void RemoveObject(const v1beta1::ClusterObject& object) { index_.RemoveObject(object); }

  // The gang of a running pod, as this preemptor sees it. nullopt: the pod leaves alone, because it
  // belongs to no gang or is already being deleted.
  std::optional<RunningGang> GangOf(const sdk::PodRecord& pod, const std::string& preemptor_uid,
                                    const sdk::ClusterView& cluster, absl::Time now) const;

  // Why pods must not be evicted for this pod alone, for people: its gang would still be
  // incomplete, so the eviction would only lose work. Empty: complete, or no gang. Members that
  // wait at Permit do not count, because their wait may time out while the victims terminate.
  std::string WhyNotAlone(const sdk::PodRecord& pod) const;

  // These pods will be evicted for the preemptor, so other preemptors must not count on them as
  // members. It holds until the evictions are visible, or for a minute if they do not happen.
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
