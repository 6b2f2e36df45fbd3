// Writes of plugins outside of attempts, and the hosts that request them.
#ifndef OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_
#define OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/cluster_state.pb.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/push_results.h"
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
  // A host pushed an effect. If it is carried out, its result is known at OnEffectEnded.
  PushEnd HandleBackgroundWrite(const std::string& name, HostRecord* host,
                                const v1beta1::SyncResponse& push, absl::Time now);
  void OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) override;

  // Whether the host is an object writer by the current plans.
  void FindObjectWriters(const std::string& name, HostRecord* host);
  // Sends object writers everything that was listed at the start, once it is known.
  void MarkObjectWriters(absl::Time now);

 private:
  // The push behind a write. Its result is for the instance that pushed it.
  struct Source {
    std::string host_name;
    uint64_t instance = 0;  // HostRecord::instances
    uint64_t push_id = 0;
  };
  // The first profile, by name, in which the host serves the plugin: the reporter of its events.
  std::string ProfileOf(const std::string& plugin, const std::string& host) const;
  void Answer(const Source& source, const absl::Status& status);
  // The first version that contains everything listed at the start is on its way to the host.
  void MarkCachesSynced(HostRecord* host, absl::Time now);

  SchedulerState& state_;
  HostCalls& host_calls_;
  ClusterEventHandler& events_;
  bool paused_ = false;
  // Writes that are under way, by plugin and key.
  absl::flat_hash_map<std::string, Source> running_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_OBJECT_WRITES_H_
