// Replays a trace's jobs on a cluster, event by event, on virtual time.
#ifndef OUTBOARD_CLI_SIMULATE_TRACE_REPLAY_H_
#define OUTBOARD_CLI_SIMULATE_TRACE_REPLAY_H_

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
#include "cli/simulate/trace/records.h"
#include "cli/simulate/trace/trace.h"
#include "shim/kube/objects.h"

namespace outboard::simulate::trace {

// The interface between jobs and the scheduler of their pods.
//
// Threading: one thread.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // Begins a new instant. Called before all other calls at it.
  // Errors: end the replay.
  virtual absl::Status Begin(absl::Time now) = 0;
  virtual void Create(const kube::PodPtr& pod, absl::Time now) = 0;
  // The pod ended or is deleted. No effect on an unknown pod.
  virtual void Delete(const std::string& uid, absl::Time now) = 0;

  // A result, in order.
  struct News {
    enum class Kind { kBound, kEvicted } kind = Kind::kBound;
    std::string uid;
  };
  // Does all work of this instant, and appends the results. Leaves work for a later instant if it
  // would not end.
  // Errors: end the replay.
  virtual absl::Status Settle(absl::Time now, std::vector<News>* news) = 0;
  // When Settle may have work without a creation or deletion. `now`: work is left and waits only
  // for time to pass. InfiniteFuture: never.
  virtual absl::Time NextWakeup(absl::Time now) = 0;
};

struct ReplayOptions {
  // The latest end of the replay.
  absl::Duration until = absl::InfiniteDuration();
  // The replay ends if no event is left and nothing happened for this long: then pods probably wait
  // for ever. Longer than the queue's longest wait without a retry.
  absl::Duration patience = absl::Minutes(10);
  // The replay ends when more pods than this wait: they arrive faster than they can run, or pods
  // with a node wait for others that get none.
  size_t most_waiting = std::numeric_limits<size_t>::max();
};

// Jobs arrive, get nodes, run and end.
//
// The order at one instant: runs end; jobs arrive (in the trace's order); pods are scheduled;
// preempted pods come back and are scheduled. Pods that these preempt come back a millisecond
// later.
// Threading: one thread.
// Lifetime: jobs, cluster and records must outlive it.
class Replay {
 public:
  // `running`: pods that run from the beginning. They stay until they are evicted, and do not come
  // back.
  Replay(const std::vector<Job>& jobs, const std::vector<kube::PodPtr>& running, Cluster* cluster,
         Records* records, absl::Time begin);

  // Call once. Errors: the cluster's.
  absl::Status Run(const ReplayOptions& options);

 private:
  struct Replica {
    std::string uid;  // empty: ended
    int incarnation = 0;
    std::optional<absl::Time> bound;
    absl::Duration done;  // saved work
    bool was_bound = false;
  };
  struct JobState {
    std::vector<Replica> replicas;
    size_t bound = 0;       // replicas with a node now
    size_t ever_bound = 0;  // replicas that ever had a node
    size_t over = 0;
    // For a gang: the start of its run, and the saved work.
    std::optional<absl::Time> running_since;
    absl::Duration done;
    // For a gang: earlier planned ends of runs are invalid.
    int run_number = 0;
  };
  struct Event {
    absl::Time when;
    enum Kind { kEnd, kArrival } kind;
    size_t job;
    int replica;     // for kEnd; -1: the whole gang
    int generation;  // the replica's incarnation, or the gang's run
    bool operator>(const Event& other) const;
  };

  void Handle(const Event& event, absl::Time now);
  void Arrive(size_t job, absl::Time now);
  void CreateReplica(size_t job, int replica, absl::Time now);
  void OnBound(const std::string& uid, absl::Time now);
  // `returning_` collects the pods that come back.
  void OnEvicted(const std::string& uid, absl::Time now);
  void EndReplica(size_t job, int replica, absl::Time now);
  // Releases its node, if any.
  void Unbind(size_t job, int replica, absl::Time now);
  // Records what a member has held until now while its gang was incomplete.
  void BookIdle(size_t job, const Replica& replica, absl::Time now);
  void Close(absl::Time now);
  // The saved work when a run ends early. Records the rest as lost.
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
  size_t bound_ = 0;  // pods with a node now
};

}  // namespace outboard::simulate::trace

#endif  // OUTBOARD_CLI_SIMULATE_TRACE_REPLAY_H_
