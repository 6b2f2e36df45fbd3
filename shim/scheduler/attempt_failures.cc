#include "shim/scheduler/attempt_failures.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/scheduler/permit_waits.h"

namespace outboard::scheduler {
namespace {

using queue::QueuedPod;

constexpr size_t kMaxFailureBytes = 64 << 10;

queue::SchedulingQueue::Rejectors RejectorsOf(const framework::Diagnosis& diagnosis) {
  queue::SchedulingQueue::Rejectors rejectors;
  rejectors.unschedulable.insert(diagnosis.unschedulable_plugins.begin(),
                                 diagnosis.unschedulable_plugins.end());
  rejectors.pending.insert(diagnosis.pending_plugins.begin(), diagnosis.pending_plugins.end());
  rejectors.post_filter.insert(diagnosis.post_filter_plugins.begin(),
                               diagnosis.post_filter_plugins.end());
  return rejectors;
}

// Without the numbers of nodes: the other scheduler has its own.
std::string ReasonsIn(const framework::Diagnosis& diagnosis) {
  return absl::StrJoin(framework::NodesByReason(diagnosis), ", ",
                       [](std::string* out, const auto& entry) { out->append(entry.first); });
}

}  // namespace

void AttemptFailures::FailUnschedulable(std::unique_ptr<Attempt> attempt,
                                        const framework::Diagnosis& diagnosis, absl::Time now) {
  if (attempt->is_external())
    return EndExternal(*attempt, absl::FailedPreconditionError(ReasonsIn(diagnosis)));
  const std::string message = framework::FitErrorMessage(diagnosis);
  VLOG(2) << "Unable to schedule pod " << attempt->pod->key() << "; no fit; waiting: " << message;
  attempt->diagnosis = diagnosis;
  const std::vector<std::string> others = std::move(attempt->rejected_with);
  const framework::ProfilePlan& plan = *attempt->plan;
  const absl::Duration elapsed = attempt->elapsed;
  // A preemption nominates nodes for the others after this.
  const bool keep_nominations = attempt->keeps_nomination || !attempt->nominated_node.empty();
  Requeue(std::move(attempt), AttemptResult::kUnschedulable, message, now);
  for (const std::string& uid : others) {
    std::unique_ptr<Attempt> other = TakeForBatch(uid, plan, now);
    if (other == nullptr) continue;
    state_.observer->OnAlgorithm(*other->pod, plan.algorithm, algorithm_.result(),
                                 algorithm_.response(), elapsed);
    other->diagnosis = diagnosis;
    other->keeps_nomination = keep_nominations;
    Requeue(std::move(other), AttemptResult::kUnschedulable, message, now);
  }
}

std::unique_ptr<Attempt> AttemptFailures::TakeForBatch(const std::string& uid,
                                                       const framework::ProfilePlan& plan,
                                                       absl::Time now) {
  const QueuedPod* const known = state_.queue.Find(uid);
  if (known == nullptr || state_.PlanOf(*known->pod) != &plan ||
      known->pod->pod.deletion_unix_seconds() != 0 ||
      (known->place != queue::Place::kActive && known->place != queue::Place::kBackoff)) {
    return nullptr;
  }
  auto attempt = std::make_unique<Attempt>();
  attempt->id = state_.NewAttemptId();
  attempt->plan = &plan;
  attempt->began = now;
  attempt->info = state_.queue.Take(uid, now);
  attempt->pod = attempt->info->pod;
  return attempt;
}

void AttemptFailures::FailNoNodes(std::unique_ptr<Attempt> attempt, absl::Time now) {
  VLOG(2) << "Unable to schedule pod " << attempt->pod->key()
          << "; no nodes are registered to the cluster; waiting";
  Requeue(std::move(attempt), AttemptResult::kUnschedulable, framework::kNoNodesAvailable, now);
}

void AttemptFailures::FailError(std::unique_ptr<Attempt> attempt, const std::string& message,
                                absl::Time now) {
  if (attempt->is_external()) return EndExternal(*attempt, absl::AbortedError(message));
  LOG(ERROR) << "Error scheduling pod " << attempt->pod->key() << "; retrying: " << message;
  Requeue(std::move(attempt), AttemptResult::kError, message, now);
}

void AttemptFailures::FailHostUnavailable(std::unique_ptr<Attempt> attempt,
                                          const std::string& host_name, const absl::Status& status,
                                          absl::Time now) {
  const std::string message = NoAnswerFrom(host_name, status);
  if (attempt->is_external()) return EndExternal(*attempt, absl::UnavailableError(message));
  attempt->failed_host = host_name;
  Requeue(std::move(attempt), AttemptResult::kHostUnavailable, message, now);
}

void AttemptFailures::Requeue(std::unique_ptr<Attempt> attempt, AttemptResult result,
                              const std::string& text, absl::Time now) {
  // It goes to the API server, and the reasons of hosts may be long together.
  const std::string message = framework::CutText(text, kMaxFailureBytes);
  const std::string uid = attempt->pod->uid();
  const std::string profile = attempt->plan == nullptr ? "" : attempt->plan->algorithm.name;
  EndAttempt(*attempt);
  state_.observer->OnAttemptEnd(*attempt->pod, profile, result, "", message, now - attempt->began);
  const kube::PodPtr current = state_.cluster.FindPod(uid);
  if (current == nullptr || !current->pod.node_name().empty() || state_.options.single_attempt) {
    VLOG(2) << "Pod " << attempt->pod->key()
            << " is not queued again: " << (current == nullptr ? "it is gone" : "it has a node");
    state_.queue.Forget(uid);
    if (current == nullptr || !current->pod.node_name().empty()) return;
  } else {
    // Neither preempts pods nor keeps a nomination: it has to wait, and so do pods like it.
    const bool found_nothing = result == AttemptResult::kUnschedulable &&
                               attempt->nominated_node.empty() && !attempt->keeps_nomination &&
                               attempt->node_name.empty();
    const bool requeued =
        result == AttemptResult::kHostUnavailable
            ? state_.queue.Park(uid, attempt->failed_host, now)
            : state_.queue.AddUnschedulable(uid, RejectorsOf(attempt->diagnosis), now);
    if (!requeued) return;
    if (attempt->plan != nullptr && attempt->plan->sort_reads_attempts &&
        result != AttemptResult::kHostUnavailable)
      state_.hosts[attempt->plan->sort_host].missing_sort_keys.insert(uid);
    if (found_nothing && state_.skipper != nullptr) state_.skipper->Failed(uid, now);
  }
  const std::optional<std::string> nominated = RenewNomination(*attempt, *current, result);
  if (result == AttemptResult::kHostUnavailable && !state_.options.single_attempt) {
    parked_pods_.Add(*current, attempt->failed_host, message, now);
  } else {
    const char* const reason =
        result == AttemptResult::kUnschedulable ? kReasonUnschedulable : kReasonSchedulerError;
    state_.actions->RecordFailed(*current, profile, message, now);
    state_.actions->PatchStatus(*current, PodScheduledFalse{reason, message}, nominated, now);
  }
  OUTBOARD_FAIL_POINT(pod_requeued);
}

std::optional<std::string> AttemptFailures::RenewNomination(const Attempt& attempt,
                                                            const kube::PodObject& current,
                                                            AttemptResult result) {
  // The cluster state changes at once, ahead of the informer.
  const bool stays = attempt.keeps_nomination || result == AttemptResult::kHostUnavailable;
  const std::string& in_status = current.pod.nominated_node_name();
  // The nomination by a preemption of its group may not be in the status yet.
  if (stays && in_status.empty()) return std::nullopt;
  const std::string& node = stays ? in_status : attempt.nominated_node;
  const uint32_t slot = state_.cluster.SlotOf(node);
  if (slot == cache::ClusterState::kNoSlot) {
    state_.cluster.Unnominate(current.uid()).IgnoreError();
  } else {
    state_.cluster.Nominate(current.uid(), slot).IgnoreError();
    OUTBOARD_FAIL_POINT(pod_nominated);
  }
  if (node == in_status) return std::nullopt;
  return node;
}

void AttemptFailures::UnreserveAndForget(Attempt* attempt, const std::string& reason,
                                         absl::Time now) {
  OUTBOARD_FAIL_POINT(before_unreserve);
  const auto decisions = host_calls_.Unreserve(*attempt, reason, now);
  Forget(attempt);
  OUTBOARD_FAIL_POINT(unreserved);
  for (const HostDecisions& its : decisions) waits_.ApplyDecisions(its, now);
}

void AttemptFailures::Forget(Attempt* attempt) {
  if (!std::exchange(attempt->assumed, false)) return;
  // NOT_FOUND: the informer has confirmed or removed the pod meanwhile; that stands.
  const absl::Status forgotten = state_.cluster.Forget(attempt->pod->uid());
  // As in kube-scheduler, a node that is taken and given back within one cycle is not an event,
  // because no other pod was tried meanwhile.
  if (forgotten.ok() && attempt->binding) hints_.PublishAssumedPodDelete(*attempt->pod);
}

void AttemptFailures::EndAttempt(const Attempt& attempt) {
  waits_.EndAttempt(attempt.id);
  if (attempt.plan != nullptr) host_calls_.EndAttempt(*attempt.plan, attempt.id);
}

void AttemptFailures::EndExternal(const Attempt& attempt, const absl::Status& outcome) {
  VLOG(2) << "Bind of pod " << attempt.pod->key() << " to node " << attempt.node_name
          << " for another scheduler: " << outcome;
  EndAttempt(attempt);
  attempt.on_external_end(outcome);
}

void AttemptFailures::EndGone(const Attempt& attempt) {
  if (attempt.is_external())
    return EndExternal(attempt, absl::NotFoundError("the pod is gone or being deleted"));
  state_.queue.Forget(attempt.pod->uid());
  EndAttempt(attempt);
}

}  // namespace outboard::scheduler
