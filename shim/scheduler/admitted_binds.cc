#include "shim/scheduler/admitted_binds.h"

#include "absl/strings/str_cat.h"
#include "shim/queue/cluster_event.h"
#include "shim/scheduler/queueing_hints.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

absl::Status AdmittedBinds::Admit(const std::string& profile, const kube::PodPtr& pod,
                                  const std::string& node_name, bool dry_run, absl::Time now) {
  cache::ClusterState& cluster = state_.cluster;
  const std::string& uid = pod->uid();
  if (const std::string on = cluster.NodeOf(uid); !on.empty()) {
    const auto known = admissions_.find(uid);
    // Our own bind, or the API server has bound the pod and so will reject this.
    if (known == admissions_.end() || !cluster.IsAssumed(uid)) return absl::OkStatus();
    if (on == node_name) {
      // The earlier bind has failed, and this one may succeed after a read that has begun.
      if (!dry_run) Await(&known->second, now);
      return absl::OkStatus();
    }
    if (!dry_run && known->second.order.attempt_id == 0) Read(&known->second, now);
    return absl::AbortedError(absl::StrCat("pod ", pod->key(), " may be on node ", on,
                                           " by an earlier bind, whose outcome is being read"));
  }
  const uint32_t slot = cluster.SlotOf(node_name);
  if (slot == cache::ClusterState::kNoSlot)
    return absl::OkStatus();  // we do not place pods there either
  const framework::ProfilePlan* const plan = state_.plans.Find(profile);
  absl::Status fits =
      cluster.CheckFits(uid, slot, plan == nullptr ? cache::GuardScope() : plan->guard);
  // Our own pods count by our attempts, and by the watch.
  if (!fits.ok() || dry_run || state_.Places(*pod)) return fits;
  if (absl::Status assumed = cluster.Assume(uid, slot); !assumed.ok()) return assumed;
  Admission& admission = admissions_[uid];
  admission.order = {this, 0, pod, node_name, profile, /*bound_by_other_scheduler=*/true};
  Await(&admission, now);
  return absl::OkStatus();
}

void AdmittedBinds::Await(Admission* admission, absl::Time now) {
  reads_.erase(admission->order.attempt_id);
  admission->order.attempt_id = 0;
  admission->settle_at = now + kSettleAfter;
  due_.emplace_back(admission->settle_at, admission->order.pod->uid());
}

void AdmittedBinds::Read(Admission* admission, absl::Time now) {
  admission->order.attempt_id = state_.NewAttemptId();
  reads_[admission->order.attempt_id] = admission->order.pod->uid();
  const BindOrder order = admission->order;  // the outcome may be there at once, and end it
  actions_.Bind(order, now);
}

void AdmittedBinds::Tick(absl::Time now) {
  while (!due_.empty() && due_.front().first <= now) {
    const auto [settle_at, uid] = std::move(due_.front());
    due_.pop_front();
    const auto found = admissions_.find(uid);
    if (found == admissions_.end() || found->second.settle_at != settle_at) continue;  // renewed
    Admission& admission = found->second;
    if (!state_.cluster.IsAssumed(uid) || state_.cluster.NodeOf(uid) != admission.order.node_name) {
      reads_.erase(admission.order.attempt_id);
      admissions_.erase(found);
    } else if (admission.order.attempt_id == 0) {
      Read(&admission, now);
    }
  }
}

absl::Time AdmittedBinds::NextTick() const {
  return due_.empty() ? absl::InfiniteFuture() : due_.front().first;
}

void AdmittedBinds::OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string&,
                                absl::Time now) {
  const auto read = reads_.extract(attempt_id);
  if (read.empty()) return;
  const auto found = admissions_.find(read.mapped());
  // kUnknown: the pod stays on the node until the API server reports more.
  if (end == BindEnd::kUnknown) return Await(&found->second, now);
  const kube::PodPtr pod = found->second.order.pod;
  admissions_.erase(found);
  // Otherwise the watch will say so.
  if (end == BindEnd::kBound) return;
  // NOT_FOUND: the informer has confirmed or removed the pod meanwhile; that stands.
  if (!state_.cluster.Forget(pod->uid()).ok()) return;
  hints_.PublishAssumedPodDelete(*pod);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
}

}  // namespace outboard::scheduler
