// Writes of plugins outside of attempts, and the hosts that request them.
#ifndef OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_
#define OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

class ClusterEventHandler;

// Background writes: effects that a host pushes on its own. They are dropped until the informers
// have synced and the host has acknowledged a version that contains all they listed; the plugin
// pushes them again.
//
// Threading: the scheduling thread.
class ObjectWrites final : public EffectOutcomeHandler {
 public:
  ObjectWrites(SchedulerState* state, HostCalls* host_calls, ClusterEventHandler* events)
      : state_(*state), host_calls_(*host_calls), events_(*events) {}

  // While paused, writes are dropped, because hosts may lack objects that are not listed yet.
  void Pause(bool paused) { paused_ = paused; }
  // A host pushed an effect.
  // Errors: INTERNAL if the host may not.
  absl::Status HandleBackgroundWrite(HostRecord* host, const v1beta1::Effect& effect,
                                     absl::Time now);
  void OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) override;

  // Whether the host is an object writer by the current plans.
  void FindObjectWriters(const std::string& name, HostRecord* host);
  // Sends object writers everything that was listed at the start, once it is known.
  void MarkObjectWriters(absl::Time now);

 private:
  // The first version that contains everything listed at the start is on its way to the host.
  void MarkCachesSynced(HostRecord* host, absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  ClusterEventHandler& events_;
  bool paused_ = false;
  // Plugin and key of the writes that are under way.
  absl::flat_hash_set<std::string> running_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_
