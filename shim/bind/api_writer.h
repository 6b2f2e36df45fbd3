// Turns decisions into writes of the Kubernetes API: bindings and pod status.
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
#include "shim/bind/inbox.h"
#include "shim/kube/api_client.h"
#include "shim/kube/objects.h"

namespace outboard::bind {

// What became of a bind. Every bind ends in exactly one of these.
enum class BindOutcome {
  kBound,     // the API server says that the pod, by UID, is on the node
  kNotBound,  // it is not, and will not be by this bind; the room can be given away
  kGone,      // as kNotBound, and the pod no longer exists or is another one
  kFenced,    // refused here: the lease may be another's; nothing was sent
  kNoRoom,    // refused here: others took the node's room meanwhile; nothing was carried out
  kUnknown,   // not settled before the lease was lost: keep the assumption
};

struct BindResult {
  BindOutcome outcome = BindOutcome::kUnknown;
  // Unless bound: the API server's words, or ours.
  std::string message;
  // The HTTP status that decided, 0 if none.
  int http_status = 0;
  // How often the binding was sent, and whether its fate had to be read back.
  int attempts = 0;
  bool settled_by_read = false;
  // From Bind to here.
  absl::Duration elapsed;
};
using BindDone = std::function<void(const BindResult&, absl::Time now)>;

// What became of an effect.
struct WriteResult {
  absl::Status status;
  std::string resource_version;  // of the object afterwards
  std::string uid{};             // of the object
  // The object, of those that hosts watch as JSON; null: of another kind, or it is about to go.
  kube::ClusterObjectPtr object{};
};
using WriteDone = std::function<void(const WriteResult&, absl::Time now)>;

struct ApiWriterOptions {
  // Writes are sent only before this moment, the lease's renew deadline; InfiniteFuture without
  // leader election. Asked on the client's thread too, right before a request leaves: thread-safe.
  std::function<absl::Time()> fence = [] { return absl::InfiniteFuture(); };
  // What the fence is compared with on the client's thread.
  std::function<absl::Time()> clock = [] { return absl::Now(); };
  // Asked on the scheduling thread right before a bind is handed to the client, unless an earlier
  // sending of it may have been carried out: whether the node can still take the pod.
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
  uint64_t status_dropped = 0;
  size_t binds_in_flight = 0;  // sent or queued, not ended
  size_t status_queued = 0;
};

// Sends binds and status patches, many at a time, and sees each to its end.
//
// A bind carries the pod's UID. An answer that leaves its fate open (timeout, connection lost, 5xx,
// conflict) is settled by a consistent read, repeated with backoff; if the pod is then still
// unbound, the same bind is sent again, which its UID makes harmless.
//
// Threading: scheduling thread only. The API client's callbacks only post to the inbox, which runs
// them on the scheduling thread.
// Lifetime:  the client outlives it; answers that come after its end are dropped.
// Errors:    in BindResult; a status patch that fails is logged and counted, as in kube-scheduler.
class ApiWriter {
 public:
  ApiWriter(kube::ApiClient* client, Inbox inbox, ApiWriterOptions options);
  ~ApiWriter();
  ApiWriter(const ApiWriter&) = delete;
  ApiWriter& operator=(const ApiWriter&) = delete;

  // Sent at the next Tick, which comes after the news of others' pods. `done` runs on the
  // scheduling thread, and never inside Bind itself.
  void Bind(BindRequest request, absl::Time now, BindDone done);

  // Carries an effect out, of the attempt of `pod` (null: of none). `done` runs on the scheduling
  // thread; inside Write itself only when the fence has passed or the effect is unknown. An error
  // is the API server's, in its words. Where an answer leaves open whether it was carried out, the
  // effect has failed, and its object is read back first.
  void Write(const v1alpha1::Effect& effect, const v1alpha1::Pod* pod, absl::Time now,
             WriteDone done);

  // Writes the PodScheduled condition and, if given, status.nominatedNodeName; nothing if the pod,
  // as the informer has it, says the same already. A newer patch of the same pod replaces one that
  // was not sent yet.
  void PatchStatus(const kube::PodObject& pod, const StatusChange& change, absl::Time now);

  // Starts what was delayed and is due. To be called at NextTick at the latest.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

  // Bindings that were sent or queued and have not ended; a shutdown waits for 0.
  size_t binds_in_flight() const;
  ApiWriterStats stats() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // callbacks hold it weakly
};

}  // namespace outboard::bind

#endif  // OUTBOARD_SHIM_BIND_API_WRITER_H_
