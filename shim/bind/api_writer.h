// Turns decisions into writes to the Kubernetes API: bindings, pod status and effects.
#ifndef OUTBOARD_SHIM_BIND_API_WRITER_H_
#define OUTBOARD_SHIM_BIND_API_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "shim/bind/api_requests.h"
#include "shim/bind/executor.h"
#include "shim/bind/fence.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"

namespace outboard::bind {

// The outcome of a bind. Every bind ends in exactly one of these.
enum class BindOutcome {
  kBound,     // the API server reports the pod, by UID, on the node
  kNotBound,  // not bound, and this request will not bind it; its place is free
  kGone,      // as kNotBound; the pod is deleted or was recreated
  kFenced,    // not sent: another replica may hold the lease
  kNoRoom,    // not executed: other pods took the node's room
  kUnknown,   // unsettled when the lease was lost: keep the assumption
};

struct BindResult {
  BindOutcome outcome = BindOutcome::kUnknown;
  // Unless bound: the reason, from the API server or from this class.
  std::string message;
  // The HTTP status that decided the outcome, 0 if none.
  int http_status = 0;
  // How often the binding was sent, and whether a read had to settle it.
  int attempts = 0;
  bool settled_by_read = false;
  // From Bind to the outcome.
  absl::Duration elapsed;
};
using BindDone = std::function<void(const BindResult&, absl::Time now)>;

// The outcome of an effect.
struct WriteResult {
  absl::Status status;
  std::string resource_version;  // of the object after the write
  std::string uid{};             // of the object
  // The object, for resources that hosts watch as JSON. Null: another kind, or the object was
  // deleted.
  kube::ClusterObjectPtr object{};
};
using WriteDone = std::function<void(const WriteResult&, absl::Time now)>;

struct ApiWriterOptions {
  // Nothing is sent once it has passed. Also checked on the client's thread right before a send.
  Fence fence;
  // The time that is written into objects: wall time. All other times are the caller's `now`.
  std::function<absl::Time()> wall = absl::Now;
  // Called on the scheduling thread right before a bind is passed to the client, unless an earlier
  // send may have been executed: whether the node can still take the pod.
  std::function<absl::Status(const BindRequest&)> still_fits = [](const BindRequest&) {
    return absl::OkStatus();
  };
  int max_binds_in_flight = 64;
  int max_writes_in_flight = 16;
  int max_status_in_flight = 16;
  size_t max_status_queued = 20000;
};

struct ApiWriterStats {
  uint64_t binds_started = 0;
  uint64_t binds_bound = 0;
  uint64_t binds_not_bound = 0;
  uint64_t binds_ambiguous = 0;
  uint64_t status_written = 0;
  uint64_t status_failed = 0;
  uint64_t status_outdated = 0;  // the pod was gone, or was bound meanwhile
  uint64_t status_dropped = 0;
  size_t binds_in_flight = 0;  // sent or queued, not ended
  size_t status_queued = 0;
};

// Sends binds and status patches, many at a time, and tracks each until its outcome is known.
//
// A bind contains the pod's UID. An ambiguous answer (timeout, lost connection, 5xx, conflict) is
// settled by a consistent read, repeated with backoff. If the pod is then still unbound, the same
// bind is sent again; the UID makes this safe.
//
// Threading: scheduling thread only. The API client's callbacks only post to the executor, which
// runs them on the scheduling thread.
// Lifetime: the client outlives this object. Answers after its destruction are dropped.
// Errors: in BindResult. A failed status patch is logged and counted, as in kube-scheduler.
class ApiWriter {
 public:
  ApiWriter(kube::ApiClient* client, Executor executor, ApiWriterOptions options);
  ~ApiWriter();
  ApiWriter(const ApiWriter&) = delete;
  ApiWriter& operator=(const ApiWriter&) = delete;

  // Sends the bind at the next Tick, after pending informer events. `done` runs on the scheduling
  // thread, never inside Bind itself.
  void Bind(BindRequest request, absl::Time now, BindDone done);

  // Executes an effect for the attempt of `pod` (null: no attempt). `done` runs on the scheduling
  // thread, inside Write only if the fence has passed or the effect is unknown. An error has the
  // API server's message. If the outcome is unknown, the effect has failed, and its object is read
  // before `done`.
  void Write(const v1beta1::Effect& effect, const v1beta1::Pod* pod, absl::Time now,
             WriteDone done);

  // Writes the PodScheduled condition and, if given, status.nominatedNodeName. Does nothing if the
  // informer's pod has the same values already. A newer patch of the same pod replaces an unsent
  // one.
  void PatchStatus(const kube::PodObject& pod, const StatusChange& change, absl::Time now);

  // Runs delayed work that is due. Call it at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Bindings queued or sent without outcome. A shutdown waits for 0.
  size_t binds_in_flight() const;
  ApiWriterStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_API_WRITER_H_
