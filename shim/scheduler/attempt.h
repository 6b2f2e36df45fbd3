// A scheduling attempt, and the table of attempts whose pods have a node.
#ifndef OUTBOARD_SHIM_SCHEDULER_ATTEMPT_H_
#define OUTBOARD_SHIM_SCHEDULER_ATTEMPT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "outboard/v1beta1/effect.pb.h"
#include "shim/cache/cluster_state.h"
#include "shim/framework/fit_error.h"
#include "shim/framework/profile_plan.h"
#include "shim/kube/objects.h"
#include "shim/queue/queued_pod.h"

namespace outboard::scheduler {

// A pod on its way to a node, from the queue or at the request of another scheduler. A plain
// record: the part that works on the attempt writes it.
// Lifetime: `info` belongs to the queue and stays valid until the attempt returns there.
struct Attempt {
  uint64_t id = 0;
  queue::QueuedPod* info = nullptr;  // null: of another scheduler
  // Set if another scheduler asked for the bind: it gets the outcome, in place of the queue. The
  // attempt leaves no events, conditions and nominations: that scheduler writes its own.
  std::function<void(const absl::Status&)> on_external_end;
  bool is_external() const { return on_external_end != nullptr; }
  kube::PodPtr pod;
  const framework::ProfilePlan* plan = nullptr;  // null: the pod's profile is unknown
  absl::Time began;                              // in the scheduler's time
  std::string node_name;                         // empty: no node yet
  uint32_t slot = 0;
  bool assumed = false;
  bool binding = false;  // past Permit, or waiting there

  // Effects that Reserve returned for execution before the bind, the host of each effect, and the
  // results so far, in the same order.
  std::vector<v1beta1::Effect> effects;
  std::vector<std::string> effect_hosts;
  std::vector<v1beta1::EffectResult> effect_results;
  // What plugins keep for the pod; the cluster has it from the end of Reserve on.
  std::vector<cache::HostState> states;
  bool asks_pre_bind = false;  // a plugin that returned one of the effects has PreBind
  // When the last effect had ended; without effects, when PreBind began.
  absl::Time pre_bind_began = absl::InfinitePast();
  int pre_bind_rounds = 0;  // answers of PreBind that named further effects
  // Of an external attempt that waits at Permit: what plugins wait for, for people.
  std::string wait_reason;
  // Why the attempt ends before its bind, for example `preempted by P`. No effect starts after the
  // current one.
  std::string cancelled_because;
  absl::Time bind_began = absl::InfinitePast();  // in the scheduler's time
  // The plugin at Bind that decided, and its host; empty: DefaultBinder.
  std::string binder;
  std::string binder_host;
  // That plugin bound the pod or may have done so: the outcome is read. With the reason if its call
  // has no usable answer.
  bool bound_by_plugin = false;
  std::string bind_unanswered;

  // The host instances called from PreFilter to Permit, in order; filled only if it is logged.
  std::vector<std::string> asked;
  // The pod was deleted during its bind; the outcome no longer matters.
  bool pod_gone = false;
  // The pod was deleted during an effect. Hosts receive the deletion after the effect has ended.
  bool deletion_is_due = false;

  // A failure replaces the pod's nomination by this node (empty: removes it), unless
  // `keeps_nomination`.
  std::string nominated_node;
  bool keeps_nomination = false;
  framework::Diagnosis diagnosis;  // of a rejection
  // Other pods of its group, which its rejection covers as well.
  std::vector<std::string> rejected_with;
  absl::Duration elapsed;   // in the algorithm, a pod's share; set with `rejected_with`
  std::string failed_host;  // the host that did not answer, if that is the failure
};

// Attempts from the end of Permit to the end of the bind, by id and by pod.
//
// Threading: thread-compatible. Lifetime: owns the attempts until Take.
class AttemptTable {
 public:
  using ById = absl::flat_hash_map<uint64_t, std::unique_ptr<Attempt>>;

  void Add(std::unique_ptr<Attempt> attempt) {
    id_of_pod_[attempt->pod->uid()] = attempt->id;
    const uint64_t id = attempt->id;
    by_id_[id] = std::move(attempt);
  }
  // Null: unknown id.
  Attempt* Find(uint64_t id) const {
    const auto it = by_id_.find(id);
    return it == by_id_.end() ? nullptr : it->second.get();
  }
  // Null: the pod has no attempt here.
  Attempt* FindByPod(const std::string& uid) const {
    const auto it = id_of_pod_.find(uid);
    return it == id_of_pod_.end() ? nullptr : by_id_.at(it->second).get();
  }
  // Removes a known attempt.
  std::unique_ptr<Attempt> Take(uint64_t id) {
    auto node = by_id_.extract(id);
    id_of_pod_.erase(node.mapped()->pod->uid());
    return std::move(node.mapped());
  }
  const ById& by_id() const { return by_id_; }
  size_t size() const { return by_id_.size(); }

 private:
  ById by_id_;
  absl::flat_hash_map<std::string, uint64_t> id_of_pod_;
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_ATTEMPT_H_
