// Private to the scheduler's own sources: an attempt, and which plugins it concerns.
#ifndef OUTBOARD_SHIM_CYCLE_SCHEDULER_ATTEMPT_H_
#define OUTBOARD_SHIM_CYCLE_SCHEDULER_ATTEMPT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "shim/cycle/fit_error.h"
#include "shim/cycle/scheduler.h"
#include "shim/kube/objects.h"
#include "shim/queue/queued_pod.h"

namespace outboard::cycle {

// A pod on its way from the queue to a node. `info` belongs to the queue and stays valid until the
// attempt is given back there.
struct Scheduler::Attempt {
  uint64_t id = 0;
  queue::QueuedPod* info = nullptr;
  kube::PodPtr pod;
  const ProfilePlan* plan = nullptr;
  absl::Time began;       // in the scheduler's time
  std::string node_name;  // empty: no node yet
  uint32_t slot = 0;
  bool assumed = false;
  bool binding = false;  // past Permit, or waiting there
  // What Reserve wants carried out before the bind, by which host, and the results so far, in this
  // order.
  std::vector<v1alpha1::Effect> effects;
  std::vector<std::string> effect_hosts;
  std::vector<v1alpha1::EffectResult> effect_results;
  bool asks_pre_bind = false;  // a plugin that named one of them is at PreBind
  absl::Time pre_bind_began = absl::InfinitePast();  // when the last of them had been
  // The plugin that wants the place for another pod. An effect that is under way is the last then.
  std::string preempted_by;
  absl::Time bind_began = absl::InfinitePast();  // in the scheduler's time
  // Instances that its calls from PreFilter to Permit went to, in order; kept where it is logged.
  std::vector<std::string> asked;
  // The pod went while its bind was under way; the outcome no longer matters.
  bool pod_gone = false;
  // It was deleted while an effect was under way, which is not told before that has ended.
  bool deletion_is_due = false;
  // What a failure does to the nomination: it becomes this node, or none, unless it is kept.
  std::string nominated_node;
  bool keeps_nomination = false;
  Diagnosis diagnosis;  // of the failure, if it is a rejection
  // Others of its group, for which its rejection holds as well.
  std::vector<std::string> rejected_with;
  absl::Duration elapsed;   // in the algorithm, if there are such
  std::string silent_host;  // the host that gave no answer, if that is the failure
};

// Pods that a host placed with another one.
struct Scheduler::PlacedTogether {
  std::vector<v1alpha1::PlannedPlacement> placements;
  bool is_group = false;
  int64_t snapshot_version = 0;  // of the first of them
  absl::Duration elapsed_each;
};

// What the profile's PostFilter plugins say together.
struct Scheduler::PostFilterOutcome {
  absl::Status status;
  size_t silent_host = 0;  // whom `status` is about
  v1alpha1::Code code = v1alpha1::UNSCHEDULABLE;
  std::vector<std::string> reasons;
  bool keeps_nomination = false;
  std::optional<v1alpha1::PreemptionCandidate> candidate;
};

}  // namespace outboard::cycle

#endif  // OUTBOARD_SHIM_CYCLE_SCHEDULER_ATTEMPT_H_
