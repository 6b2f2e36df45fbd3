// Evicts pods: the condition with the reason, then the deletion.
#ifndef OUTBOARD_SHIM_BIND_POD_EVICTOR_H_
#define OUTBOARD_SHIM_BIND_POD_EVICTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/bind/api_requests.h"
#include "shim/bind/executor.h"
#include "shim/bind/fence.h"
#include "shim/kube/api_client.h"

namespace outboard::bind {

// The outcome of an eviction.
enum class EvictionOutcome {
  kEvicted,  // the API server accepted the delete
  kGone,     // the pod is deleted or was recreated
  kFailed,   // rejected, unanswered, or not sent (another replica may hold the lease)
};

struct EvictionResult {
  EvictionOutcome outcome = EvictionOutcome::kFailed;
  std::string message;  // for kFailed
};
using EvictionDone = std::function<void(const EvictionResult&, absl::Time now)>;

struct PodEvictorOptions {
  // See ApiWriterOptions.
  Fence fence;
  // The time that is written into objects: wall time. All other times are the caller's `now`.
  std::function<absl::Time()> wall = absl::Now;
  int max_in_flight = 16;
};

// Patches the DisruptionTarget condition, with kube-scheduler's retries, then deletes the pod by
// UID, once.
//
// Threading: scheduling thread only. The client's callbacks only post to the executor.
// Lifetime: the client outlives this object. Answers after its destruction are dropped.
// Errors: in EvictionResult.
class PodEvictor {
 public:
  PodEvictor(kube::ApiClient* client, Executor executor, PodEvictorOptions options);
  ~PodEvictor();
  PodEvictor(const PodEvictor&) = delete;
  PodEvictor& operator=(const PodEvictor&) = delete;

  // `done` runs on the scheduling thread, after Evict has returned.
  void Evict(EvictRequest request, absl::Time now, EvictionDone done);

  // Runs delayed work that is due. Call it at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Evictions without outcome.
  size_t pending() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_POD_EVICTOR_H_
