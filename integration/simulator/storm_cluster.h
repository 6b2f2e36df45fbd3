// The API server, its controllers and kubelets, for storms of preemptions on virtual time: every
// operation is delayed, and some fail.
#ifndef OUTBOARD_INTEGRATION_SIMULATOR_STORM_CLUSTER_H_
#define OUTBOARD_INTEGRATION_SIMULATOR_STORM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "shim/scheduler/cluster_actions.h"
#include "shim/scheduler/scheduler.h"

namespace outboard::storms {

// The plugin that selects victims.
enum class Plugin { kCostAware, kDefault };
// A KubeSchedulerConfiguration with it, and gangs.
std::string ConfigText(Plugin plugin);

// Random numbers, reproducible on every platform.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Percent(int64_t chance) { return Below(100) < chance; }
  template <typename T>
  T OneOf(const std::vector<T>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }

 private:
  std::mt19937_64 random_;
};

enum class Work { kTraining, kInference, kOther };

// A pod as the generator made it.
struct StormPod {
  std::string name;
  int32_t priority = 0;
  int64_t gpus = 0, cpus = 0;
  Work work = Work::kOther;
  int gang = -1;
  int gang_min = 1;
  bool gang_is_job = false;  // Otherwise Koordinator's.
  bool checkpointing = false;
  std::optional<absl::Time> checkpoint;
  std::optional<absl::Time> end;
  bool never_preempts = false;
  bool comes_back = false;  // Its controller recreates it.
  int incarnation = 0;

  // The following fields are its present state.
  kube::PodPtr object;  // As the API server stores it.
  bool gone = false;
  const std::string& uid() const { return object->uid(); }
  bool leaving() const { return object->pod.deletion_unix_seconds() != 0; }
  const std::string& node() const { return object->pod.node_name(); }
};

// Threading: one thread.
// Lifetime: must outlive the scheduler.
class StormCluster final : public scheduler::ClusterActions {
 public:
  // `fails`: binds and evictions fail now and then.
  StormCluster(uint64_t seed, bool fails) : dice_(seed), fails_(fails) {}
  void SetScheduler(scheduler::Scheduler* scheduler) { scheduler_ = scheduler; }

  using Action = std::function<void(absl::Time now)>;
  void At(absl::Time when, Action action);
  // The time of the next action; InfiniteFuture: none.
  absl::Time Next() const;
  // Runs all due actions, in order.
  void Run(absl::Time now);

  // Creates a pod, pending or on a given node. Returns its uid.
  std::string Create(StormPod pod, const std::string& node, absl::Time now);
  // With the pod's own grace period.
  void Delete(const std::string& uid, absl::Time now);
  void WriteCheckpoint(const std::string& uid, absl::Time now);

  // By uid, including deleted pods.
  const std::map<std::string, StormPod>& pods() const { return pods_; }
  const StormPod& pod(const std::string& uid) const { return pods_.at(uid); }

  // Events for the checks.
  struct Callbacks {
    std::function<void(const StormPod&, const std::string& node, absl::Time)> on_bound;
    std::function<void(const std::string& uid)> on_bind_refused;
    std::function<void(uint64_t preemption, const std::string& victim)> on_evict_ordered;
    std::function<void(uint64_t preemption, const std::string& victim, scheduler::EvictEnd)>
        on_evict_ended;
    // The scheduler has nominated it to a node, or holds it at Permit there.
    std::function<void(const std::string& uid, const std::string& node)> on_nominated;
    // The scheduler knows of the deletion.
    std::function<void(const std::string& uid)> on_gone;
    std::function<void(const std::string& what)> on_wrong;
  };
  Callbacks callbacks;
  int64_t failed_evictions = 0, failed_binds = 0;

  void Bind(const scheduler::BindOrder& order, absl::Time now) override;
  void Evict(const scheduler::EvictOrder& order, absl::Time now) override;
  void RecordPreempted(const kube::PodObject&, const std::string&, const std::string&,
                       const std::string&, bool, absl::Time) override {}
  void Write(const scheduler::EffectOrder& order, absl::Time now) override;
  void RecordScheduled(const kube::PodObject&, const std::string&, const std::string&,
                       absl::Time) override {}
  void RecordFailed(const kube::PodObject&, const std::string&, const std::string&,
                    absl::Time) override {}
  void PatchStatus(const kube::PodObject& pod, const std::optional<scheduler::PodScheduledFalse>&,
                   const std::optional<std::string>& nominated_node, absl::Time now) override;

 private:
  // A delay of some milliseconds.
  absl::Duration Moment() { return absl::Milliseconds(dice_.Between(1, 300)); }
  StormPod* Find(const std::string& uid);
  // Writes a new version of the pod; the scheduler gets it a moment later.
  void Update(StormPod* pod, const std::function<void(kube::PodObject*)>& change, absl::Time now);
  // Informers deliver events in order.
  void Tell(Action news, absl::Time now);
  void BeginDeletion(StormPod* pod, bool preempted, absl::Time now);
  void Vanish(const std::string& uid, absl::Time now);
  scheduler::EvictEnd EndEviction(const std::string& uid, absl::Time now);

  Dice dice_;
  const bool fails_;
  scheduler::Scheduler* scheduler_ = nullptr;
  std::map<std::pair<absl::Time, uint64_t>, Action> actions_;
  uint64_t last_action_ = 0;
  absl::Time last_news_ = absl::InfinitePast();
  int64_t last_version_ = 0;
  std::map<std::string, StormPod> pods_;
  std::map<std::string, absl::Time> status_written_;  // by uid: time of the last write
};

// Training, inference and other work, as on GPU clusters.
StormPod RandomPod(const std::string& name, int64_t node_gpus, absl::Time now, Dice* dice);

// Deadlines so long that no pod fails because this machine is busy.
scheduler::SchedulerOptions Patient(scheduler::SchedulerOptions options);

// As a Kubernetes object.
kube::PodPtr ObjectOf(const StormPod& pod, const std::string& uid, const std::string& node,
                      absl::Time now);

}  // namespace outboard::storms

#endif  // OUTBOARD_INTEGRATION_SIMULATOR_STORM_CLUSTER_H_
