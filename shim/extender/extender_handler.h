// The extender's part on the scheduling thread: verdicts and scores of the profile's hosts for
// kube-scheduler's pods.
#ifndef OUTBOARD_SHIM_EXTENDER_EXTENDER_HANDLER_H_
#define OUTBOARD_SHIM_EXTENDER_EXTENDER_HANDLER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/extender/messages.h"
#include "shim/scheduler/externally_scheduled_pods.h"

namespace outboard::extender {

// kube-scheduler's watch may be ahead of the shim's: requests wait for an unknown pod until
// `give_up`.
//
// Threading: scheduling thread. Each reply is called once, on that thread, at once or soon; that of
// Bind by `give_up`, unless the bind itself is under way then.
// Lifetime: `pods` outlives this object. Pending replies are destroyed with it, uncalled.
// Errors: a reply's status has a message for kube-scheduler's log.
class ExtenderHandler {
 public:
  using NodesReply = std::function<void(absl::StatusOr<NodesAnswer>)>;
  using PreemptReply = std::function<void(absl::StatusOr<std::vector<bool>>)>;
  using BindReply = std::function<void(absl::Status)>;
  // Receives the objection; empty: none.
  using AdmitReply = std::function<void(absl::StatusOr<std::string>)>;

  ExtenderHandler(scheduler::ExternallyScheduledPods* pods, std::string profile)
      : pods_(pods), profile_(std::move(profile)) {}

  // Verdicts and scores, from one call of the hosts. The answer says whether a plugin failed to
  // score.
  void Evaluate(std::shared_ptr<const NodesQuestion> question, absl::Time give_up, absl::Time now,
                NodesReply reply);
  // One answer per node of the question: whether the profile's filters accept the pod without the
  // node's victims.
  void Preempt(std::shared_ptr<const PreemptionQuestion> question, absl::Time give_up,
               absl::Time now, PreemptReply reply);
  // Only for the process that holds the lease. Waits at Permit and PreBind end at `give_up`.
  void Bind(std::shared_ptr<const BindingOrder> order, absl::Time give_up, absl::Time now,
            BindReply reply);

  // Whether another scheduler's bind leaves its node within capacity; if so, the pod counts there
  // from now on. Only for the process that holds the lease: it alone knows its pending binds.
  void Admit(std::shared_ptr<const BindReview> review, absl::Time give_up, absl::Time now,
             AdmitReply reply);

  // The pod was added or changed.
  void OnPod(const std::string& uid, absl::Time now);
  // Ends requests whose pods did not appear and binds that are late, and handles admitted binds
  // that did not appear.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

 private:
  using Work = std::function<void(absl::StatusOr<kube::PodPtr> pod, absl::Time now)>;
  struct Waiting {
    PodName pod;
    absl::Time give_up;
    Work work;
  };

  // Calls `work` when the pod is known, usually at once.
  void WithPod(const PodName& pod, absl::Time give_up, absl::Time now, Work work);
  absl::StatusOr<NodesAnswer> EvaluateKnown(const kube::PodObject& pod,
                                            const NodesQuestion& question, absl::Time now);

  scheduler::ExternallyScheduledPods* const pods_;
  const std::string profile_;
  std::deque<Waiting> waiting_;
};

// The extender's score for a mean score: rounded to the nearest of 0..10, halves up. Pure.
int64_t ExtenderScore(int64_t mean);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_EXTENDER_HANDLER_H_
