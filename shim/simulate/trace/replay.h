// What becomes of a trace's jobs on a cluster, event by event, on virtual time.
#ifndef OUTBOARD_SHIM_SIMULATE_TRACE_REPLAY_H_
#define OUTBOARD_SHIM_SIMULATE_TRACE_REPLAY_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"
#include "shim/simulate/trace/records.h"
#include "shim/simulate/trace/trace.h"

namespace outboard::simulate::trace {

// The seam between jobs and whoever schedules their pods.
//
// Threading: one thread.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // A new instant; comes before all else that is done at it. Errors: end the replay.
  virtual absl::Status Begin(absl::Time now) = 0;
  virtual void Create(const kube::PodPtr& pod, absl::Time now) = 0;
  // The pod is over, or is taken away; nothing if it is not there.
  virtual void Delete(const std::string& uid, absl::Time now) = 0;

  // Something that came of it, in order.
  struct News {
    enum class Kind { kBound, kEvicted } kind = Kind::kBound;
    std::string uid;
  };
  // Does what can be done at this instant, and appends what came of it. Where that would have no
  // end something is left for a later instant. Errors: end the replay.
  virtual absl::Status Settle(absl::Time now, std::vector<News>* news) = 0;
  // When Settle may have something to do though nothing is created or deleted; `now`: something is
  // left, and waits only for time to pass; InfiniteFuture: never.
  virtual absl::Time NextWakeup(absl::Time now) = 0;
};

struct ReplayOptions {
  // The replay ends here at the latest.
  absl::Duration until = absl::InfiniteDuration();
  // It ends when nothing is to come and nothing has happened for so long: pods that wait then wait
  // for ever, as far as can be seen. Longer than the queue lets a pod wait without trying it.
  absl::Duration patience = absl::Minutes(10);
  // It ends when more pods than these wait: then they come faster than they can run, or those that
  // have a node wait for others that get none.
  size_t most_waiting = std::numeric_limits<size_t>::max();
};

// Jobs come, get nodes, run and end.
//
// Everything at one instant happens in this order: runs end, jobs arrive (in the trace's order),
// pods are scheduled, pods that were preempted come back, and are scheduled; if that preempts
// others they come back a millisecond later. Threading: one thread. Lifetime: jobs, cluster and
// records outlive it.
class Replay {
 public:
  // `running`: pods that are there from the beginning; they stay until they are evicted, and do not
  // come back.
  Replay(const std::vector<Job>& jobs, const std::vector<kube::PodPtr>& running, Cluster* cluster,
         Records* records, absl::Time begin);

  // To be called once. Errors: the cluster's.
  absl::Status Run(const ReplayOptions& options);

 private:
  struct Replica {
    std::string uid;  // empty: it is over
    int incarnation = 0;
    std::optional<absl::Time> bound;
    absl::Duration done;  // work that is saved
    bool was_bound = false;
  };
  struct JobState {
    std::vector<Replica> replicas;
    size_t bound = 0;       // replicas that have a node now
    size_t ever_bound = 0;  // replicas that have had one
    size_t over = 0;
    // Of a gang: when its run began, and the work that is saved.
    std::optional<absl::Time> running_since;
    absl::Duration done;
    // Ends of runs that were planned before do not count any more. Of a gang.
    int run_number = 0;
  };
  struct Event {
    absl::Time when;
    enum Kind { kEnd, kArrival } kind;
    size_t job;
    int replica;     // of kEnd; -1: the whole gang
    int generation;  // the replica's incarnation, or the gang's run
    bool operator>(const Event& other) const;
  };

  void Handle(const Event& event, absl::Time now);
  void Arrive(size_t job, absl::Time now);
  void CreateReplica(size_t job, int replica, absl::Time now);
  void OnBound(const std::string& uid, absl::Time now);
  // Pods that are to come back are noted in `returning_`.
  void OnEvicted(const std::string& uid, absl::Time now);
  void EndReplica(size_t job, int replica, absl::Time now);
  // Takes its node from it, if it has one.
  void Unbind(size_t job, int replica, absl::Time now);
  // What a member has held until now while its gang was not complete.
  void BookIdle(size_t job, const Replica& replica, absl::Time now);
  void Close(absl::Time now);
  // What is saved of the work when a run ends early; the rest is booked as lost.
  absl::Duration Save(size_t job, absl::Duration done, double replicas);

  const std::vector<Job>& jobs_;
  Cluster* const cluster_;
  Records* const records_;
  const absl::Time begin_;
  std::vector<JobState> states_;
  std::vector<Amounts> amounts_;  // of a replica, by job
  absl::flat_hash_map<std::string, Amounts> others_;
  absl::flat_hash_map<std::string, std::pair<size_t, int>> by_uid_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::pair<size_t, int>> returning_;
  size_t bound_ = 0;  // pods that have a node now
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_SHIM_SIMULATE_TRACE_REPLAY_H_
