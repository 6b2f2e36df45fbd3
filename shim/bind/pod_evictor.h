// Has pods leave: the condition that says why, then the deletion.
#ifndef OUTBOARD_SHIM_BIND_POD_EVICTOR_H_
#define OUTBOARD_SHIM_BIND_POD_EVICTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/bind/api_requests.h"
#include "shim/bind/inbox.h"
#include "shim/kube/api_client.h"

namespace outboard::bind {

// What became of an eviction.
enum class EvictionOutcome {
  kEvicted,  // the API server took the deletion
  kGone,     // the pod is no longer there, or another one has its name
  kFailed,   // refused, unanswered, or not sent for the lease may be another's
};

struct EvictionResult {
  EvictionOutcome outcome = EvictionOutcome::kFailed;
  std::string message;  // with kFailed
};
using EvictionDone = std::function<void(const EvictionResult&, absl::Time now)>;

struct PodEvictorOptions {
  // As ApiWriterOptions.
  std::function<absl::Time()> fence = [] { return absl::InfiniteFuture(); };
  std::function<absl::Time()> clock = [] { return absl::Now(); };
  int max_in_flight = 16;
};

// Patches the DisruptionTarget condition, as kube-scheduler retries it, and then deletes the pod,
// by UID and once.
//
// Threading: scheduling thread only; the client's callbacks only post to the inbox.
// Lifetime:  the client outlives it; answers that come after its end are dropped.
// Errors:    in EvictionResult.
class PodEvictor {
 public:
  PodEvictor(kube::ApiClient* client, Inbox inbox, PodEvictorOptions options);
  ~PodEvictor();
  PodEvictor(const PodEvictor&) = delete;
  PodEvictor& operator=(const PodEvictor&) = delete;

  // `done` runs on the scheduling thread, after Evict has returned.
  void Evict(EvictRequest request, absl::Time now, EvictionDone done);

  // Starts what was delayed and is due. To be called at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Evictions that have not ended.
  size_t pending() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_POD_EVICTOR_H_
