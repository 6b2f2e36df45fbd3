// Tells users of pods that have been parked for longer than a moment.
#ifndef OUTBOARD_SHIM_SCHEDULER_PARKED_PODS_H_
#define OUTBOARD_SHIM_SCHEDULER_PARKED_PODS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "shim/kube/objects.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

// For people: the host did not answer.
std::string NoAnswerFrom(const std::string& host, const absl::Status& status);

// A pod is parked if a host did not answer for it. Most of these pods are placed soon afterwards: a
// host is replaced, or one call was late. So the event and the condition are written only after
// SchedulerOptions::host_grace. Otherwise a host that restarts would cost two requests for each
// waiting pod, at the very moment at which all of them are tried again.
//
// Threading: the scheduling thread.
class ParkedPods {
 public:
  explicit ParkedPods(SchedulerState* state) : state_(*state) {}

  // The pod is being parked for the host. The first message since the last report is reported.
  void Add(const kube::PodObject& pod, const std::string& host, const std::string& message,
           absl::Time now);
  // Writes what is due, once for each pod that is still parked.
  void Report(absl::Time now);
  // When Report has to be called.
  absl::Time NextWakeup() const { return next_report_; }

 private:
  struct Unreported {
    absl::Time since;
    std::string message;
  };

  SchedulerState& state_;
  // By uid. The pods may be in the queue again, or gone.
  absl::flat_hash_map<std::string, Unreported> unreported_;
  absl::Time next_report_ = absl::InfiniteFuture();
};

}  // namespace outboard::scheduler

#endif  // OUTBOARD_SHIM_SCHEDULER_PARKED_PODS_H_
