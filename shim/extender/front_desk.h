// What the extender answers, on the scheduling thread: verdicts and scores of the profile's hosts
// on pods that kube-scheduler places.
#ifndef OUTBOARD_SHIM_EXTENDER_FRONT_DESK_H_
#define OUTBOARD_SHIM_EXTENDER_FRONT_DESK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "shim/cycle/foreign_pods.h"
#include "shim/extender/messages.h"

namespace outboard::extender {

// kube-scheduler's watch and ours race: a pod that is not known yet is waited for, until `give_up`.
//
// Threading: the scheduling thread. A reply is called once, there, soon after or at once.
// Lifetime:  `pods` outlives it; replies that are still waited for go with it, uncalled.
// Errors:    a reply's status has words for kube-scheduler's log.
class FrontDesk {
 public:
  using NodesReply = std::function<void(absl::StatusOr<NodesAnswer>)>;
  using PreemptReply = std::function<void(absl::StatusOr<std::vector<bool>>)>;
  using BindReply = std::function<void(absl::Status)>;
  // What is to be objected; empty: nothing.
  using AdmitReply = std::function<void(absl::StatusOr<std::string>)>;

  FrontDesk(cycle::ForeignPods* pods, std::string profile)
      : pods_(pods), profile_(std::move(profile)) {}

  // Verdicts and scores, of one call of the hosts. That a plugin failed to score is in the answer.
  void Judge(std::shared_ptr<const NodesQuestion> question, absl::Time give_up, absl::Time now,
             NodesReply reply);
  // One answer a node of the question: whether evicting its victims would make room by the word of
  // the profile's filters.
  void Preempt(std::shared_ptr<const PreemptionQuestion> question, absl::Time give_up,
               absl::Time now, PreemptReply reply);
  // For the process that holds the lease.
  void Bind(std::shared_ptr<const BindingOrder> order, absl::Time give_up, absl::Time now,
            BindReply reply);

  // Whether another's bind leaves every node within its means; if so, it counts from now on. For
  // the process that holds the lease: it alone knows what it is about to bind.
  void Admit(std::shared_ptr<const BindReview> review, absl::Time give_up, absl::Time now,
             AdmitReply reply);

  // The pod has come, or changed.
  void OnPod(const std::string& uid, absl::Time now);
  // Gives up on pods that did not come, and on binds that were admitted and did not come.
  void Tick(absl::Time now);
  absl::Time NextTick() const;

 private:
  using Work = std::function<void(absl::StatusOr<kube::PodPtr> pod, absl::Time now)>;
  struct Waiting {
    PodName pod;
    absl::Time give_up;
    Work work;
  };

  // Has `work` done once the pod is known, which is usually now.
  void WithPod(const PodName& pod, absl::Time give_up, absl::Time now, Work work);
  absl::StatusOr<NodesAnswer> JudgeKnown(const kube::PodObject& pod, const NodesQuestion& question,
                                         absl::Time now);

  cycle::ForeignPods* const pods_;
  const std::string profile_;
  std::deque<Waiting> waiting_;
};

// A mean score as the extender tells it: rounded to the nearest of 0..10, halves up. Pure.
int64_t ExtenderScore(int64_t mean);

}  // namespace outboard::extender

#endif  // OUTBOARD_SHIM_EXTENDER_FRONT_DESK_H_
