#include "shim/scheduler/preemption_tracker.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shim/framework/disruption_budgets.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/binding_cycle.h"
#include "shim/scheduler/permit_waits.h"

namespace outboard::scheduler {

Preemptions::Step Preemptions::Begin(uint64_t id, Preemption preemption) {
  latest_[preemption.preemptor->uid()] = id;
  for (const std::string& uid : preemption.members) latest_[uid] = id;
  Running& running = running_[id];
  running.preemption = std::move(preemption);
  const std::vector<kube::PodPtr>& victims = running.preemption.victims;
  by_last_victim_[victims.back()->uid()].push_back(id);
  Step step;
  if (victims.size() == 1) {
    running.last_begun = true;
    step.evict = victims;
  } else {
    step.evict.assign(victims.begin(), victims.end() - 1);
  }
  running.under_way = step.evict.size();
  return step;
}

Preemptions::Step Preemptions::EvictionEnded(uint64_t id, bool failed, bool report_follows) {
  Step step;
  const auto it = running_.find(id);
  if (it == running_.end()) return step;
  Running& running = it->second;
  running.failed |= failed;
  if (--running.under_way > 0) return step;
  if (!running.failed && !running.last_begun) {
    running.last_begun = true;
    running.under_way = 1;
    step.evict.push_back(running.preemption.victims.back());
    return step;
  }
  step.failed = running.failed;
  if (running.failed || !report_follows) step.over = Forget(id);
  return step;
}

Preemption Preemptions::Forget(uint64_t id) {
  Preemption over = std::move(running_.extract(id).mapped().preemption);
  const auto same = by_last_victim_.find(over.victims.back()->uid());
  same->second.erase(std::find(same->second.begin(), same->second.end(), id));
  if (same->second.empty()) by_last_victim_.erase(same);
  const auto forget = [&](const std::string& uid) {
    const auto latest = latest_.find(uid);
    if (latest != latest_.end() && latest->second == id) latest_.erase(latest);
  };
  forget(over.preemptor->uid());
  for (const std::string& uid : over.members) forget(uid);
  return over;
}

std::vector<std::string> Preemptions::VictimLeft(absl::string_view uid) {
  std::vector<std::string> preemptors;
  const auto it = by_last_victim_.find(uid);
  if (it == by_last_victim_.end()) return preemptors;
  const std::vector<uint64_t> ids = it->second;
  for (const uint64_t id : ids) {
    const Running& running = running_.at(id);
    const Preemption& preemption = running.preemption;
    preemptors.push_back(preemption.preemptor->uid());
    preemptors.insert(preemptors.end(), preemption.members.begin(), preemption.members.end());
    if (running.last_begun && running.under_way == 0) Forget(id);
  }
  return preemptors;
}

const Preemption* Preemptions::Find(uint64_t id) const {
  const auto it = running_.find(id);
  return it == running_.end() ? nullptr : &it->second.preemption;
}

const std::string* Preemptions::GateOf(
    absl::string_view uid, absl::FunctionRef<bool(const std::string& victim)> is_leaving) const {
  const auto latest = latest_.find(uid);
  if (latest == latest_.end()) return nullptr;
  const Running& running = running_.at(latest->second);
  if (running.preemption.gate.empty()) return nullptr;
  // The answer to the last eviction may arrive after the informer has reported it.
  if (running.last_begun && is_leaving(running.preemption.victims.back()->uid())) return nullptr;
  return &running.preemption.gate;
}

// --- PreemptionTracker

PreemptionTracker::Victims PreemptionTracker::SortVictims(
    const v1beta1::PreemptionCandidate& candidate, Preemption* preemption) const {
  Victims victims;
  bool last_makes_room = false;
  // Companions first: a pod that waits for the last victim waits for room on the node.
  for (const auto* uids : {&candidate.companion_uids(), &candidate.victim_uids()}) {
    for (const std::string& uid : *uids) {
      const kube::PodPtr& victim = victims.all.emplace_back(state_.cluster.FindPod(uid));
      const Attempt* const its_attempt = state_.attempts.FindByPod(uid);
      if (victim->pod.deletion_unix_seconds() != 0) {
        ++victims.leaving;  // needs no request
      } else if ((its_attempt != nullptr && waits_.Waits(its_attempt->id)) ||
                 binding_.FindInPreBind(uid) != nullptr) {
        victims.waiting.push_back(victim);
      } else {
        preemption->victims.push_back(victim);
        last_makes_room = uids == &candidate.victim_uids();
      }
    }
  }
  // All room on the node comes without an eviction; only companions are evicted, elsewhere.
  if (!last_makes_room) preemption->gate.clear();
  return victims;
}

std::optional<std::string> PreemptionTracker::FindLimit(
    const kube::PodObject& preemptor, const v1beta1::PreemptionCandidate& candidate,
    absl::Time now) {
  Preemption ignored;
  const Victims victims = SortVictims(candidate, &ignored);
  const size_t evictions = victims.all.size() - victims.leaving;
  const SchedulerOptions& options = state_.options;
  const size_t per_attempt = options.max_evictions_per_attempt;
  if (per_attempt > 0 && evictions > per_attempt) {
    state_.observer->OnPreemptionLimited(preemptor, "attempt");
    return absl::StrCat("preemption: put off because it would evict ", evictions,
                        " pods, more than preemption.maxEvictionsPerAttempt, ", per_attempt, ".");
  }
  const size_t per_minute = options.max_evictions_per_minute;
  // A preemption that evicts no pod needs no room in the minute. The text is the same at each try,
  // so that the pod's event is one series.
  if (per_minute > 0 && evictions > 0 && recent_.Count(now) + evictions > per_minute) {
    state_.observer->OnPreemptionLimited(preemptor, "minute");
    return absl::StrCat("preemption: put off because it would evict ", evictions,
                        " pods, beyond those of the last minute, more than "
                        "preemption.maxEvictionsPerMinute, ",
                        per_minute, ".");
  }
  return std::nullopt;
}

void PreemptionTracker::Preempt(std::unique_ptr<Attempt> attempt,
                                const framework::Diagnosis& diagnosis,
                                const v1beta1::PreemptionCandidate& candidate, absl::Time now) {
  const framework::ProfilePlan& plan = *attempt->plan;
  Preemption preemption;
  preemption.preemptor = attempt->pod;
  preemption.profile = plan.algorithm.name;
  preemption.node_name = state_.cluster.NodeAt(candidate.slot())->key();
  if (std::count(plan.preemption_gates.begin(), plan.preemption_gates.end(), candidate.plugin())) {
    preemption.gate = candidate.plugin();
  }
  const Victims victims = SortVictims(candidate, &preemption);
  for (const v1beta1::Nomination& nomination : candidate.nominations())
    preemption.members.push_back(nomination.pod_uid());
  VLOG(2) << "The target node for the preemption is determined: pod " << attempt->pod->key()
          << ", node " << preemption.node_name << ", " << victims.all.size() << " victims";
  state_.observer->OnPreemption(*attempt->pod, preemption.node_name, victims.all,
                                victims.all.size() - victims.leaving);
  recent_.Add(victims.all.size() - victims.leaving, now);
  state_.observer->OnBudgetViolations(
      framework::CountBudgetViolations(preemption.victims, state_.cluster));

  const uint64_t id = attempt->id;
  const Preemption order = preemption;
  Preemptions::Step step;
  if (!preemption.victims.empty()) step = preemptions_.Begin(id, std::move(preemption));
  // The pod is requeued first, so that no event from now on is lost for it.
  attempt->nominated_node = order.node_name;
  failures_.FailUnschedulable(std::move(attempt), diagnosis, now);
  NominateMembers(candidate, *order.preemptor, now);
  if (victims.all.size() == victims.leaving) return;
  ClearLowerNominations(*order.preemptor, order.node_name, now);
  RejectWaiting(victims.waiting, order, candidate.plugin(), now);
  for (const kube::PodPtr& victim : step.evict)
    state_.actions->Evict({this, id, victim, order.profile}, now);
}

void PreemptionTracker::NominateMembers(const v1beta1::PreemptionCandidate& candidate,
                                        const kube::PodObject& preemptor, absl::Time now) {
  for (const v1beta1::Nomination& nomination : candidate.nominations()) {
    const queue::QueuedPod* const member = state_.queue.Find(nomination.pod_uid());
    if (member == nullptr) continue;  // It will not be tried again.
    const std::string& node_name = state_.cluster.NodeAt(nomination.slot())->key();
    state_.cluster.Nominate(member->uid(), nomination.slot()).IgnoreError();
    state_.actions->PatchStatus(*member->pod, std::nullopt, node_name, now);
    ClearLowerNominations(preemptor, node_name, now);
  }
}

void PreemptionTracker::RejectWaiting(const std::vector<kube::PodPtr>& waiting,
                                      const Preemption& preemption, const std::string& plugin,
                                      absl::Time now) {
  for (const kube::PodPtr& victim : waiting) {
    const Attempt* const its_attempt = state_.attempts.FindByPod(victim->uid());
    if (its_attempt == nullptr) continue;
    if (Attempt* in_pre_bind = binding_.FindInPreBind(victim->uid())) {
      VLOG(2) << "Preemptor " << preemption.preemptor->key()
              << " rejected a pod in preBind: " << victim->key() << " on node "
              << preemption.node_name;
      binding_.CancelPreBind(in_pre_bind, absl::StrCat("preempted by ", plugin), now);
    } else {
      waits_.Preempt(its_attempt->id, plugin, now);
    }
    state_.actions->RecordPreempted(*victim, preemption.profile, preemption.preemptor->uid(),
                                    preemption.node_name, /*in_memory=*/true, now);
  }
}

void PreemptionTracker::ClearLowerNominations(const kube::PodObject& preemptor,
                                              const std::string& node_name, absl::Time now) {
  // Pods that are nominated to the node may not fit any more, and should look elsewhere soon. The
  // informer reports their change.
  for (const kube::PodPtr& pod : state_.cluster.NominatedTo(node_name)) {
    if (pod->pod.priority() >= preemptor.pod.priority()) continue;
    if (pod->pod.nominated_node_name().empty()) continue;
    state_.actions->PatchStatus(*pod, std::nullopt, "", now);
  }
}

void PreemptionTracker::OnEvictionEnded(uint64_t preemption_id, const kube::PodPtr& victim,
                                        EvictEnd end, const std::string& message, absl::Time now) {
  const Preemption* preemption = preemptions_.Find(preemption_id);
  if (preemption == nullptr) return;
  const std::string preemptor = preemption->preemptor->key();
  std::vector<std::string> preemptors = preemption->members;
  preemptors.push_back(preemption->preemptor->uid());
  switch (end) {
    case EvictEnd::kEvicted:
      VLOG(2) << "Pod " << preemptor << " preempted pod " << victim->key();
      state_.actions->RecordPreempted(*victim, preemption->profile, preemption->preemptor->uid(),
                                      preemption->node_name, /*in_memory=*/false, now);
      break;
    case EvictEnd::kGone:
      VLOG(2) << "Victim pod " << victim->key() << " is already deleted";
      break;
    case EvictEnd::kFailed:
      LOG(ERROR) << "Eviction of pod " << victim->key() << " for pod " << preemptor
                 << " failed: " << message;
      break;
  }
  const Preemptions::Step step =
      preemptions_.EvictionEnded(preemption_id, end == EvictEnd::kFailed,
                                 end == EvictEnd::kEvicted && !IsLeaving(victim->uid()));
  for (const kube::PodPtr& next : step.evict) {
    state_.actions->Evict({this, preemption_id, next, preemption->profile}, now);
  }
  for (const std::string& uid : preemptors) ReleaseUnlessGated(uid);
  // There may be no event that retries the pods, so they are tried at once.
  if (step.failed) state_.queue.Activate(preemptors, now);
}

const std::string* PreemptionTracker::GateOf(const std::string& uid) const {
  return preemptions_.GateOf(uid, [this](const std::string& victim) { return IsLeaving(victim); });
}

bool PreemptionTracker::IsLeaving(const std::string& uid) const {
  const kube::PodPtr pod = state_.cluster.FindPod(uid);
  return pod == nullptr || (pod->pod.deletion_unix_seconds() != 0 && !pod->vanishes);
}

void PreemptionTracker::ReleasePreemptorsOf(const std::string& victim_uid) {
  if (!IsLeaving(victim_uid)) return;
  for (const std::string& uid : preemptions_.VictimLeft(victim_uid)) ReleaseUnlessGated(uid);
}

void PreemptionTracker::ReleaseUnlessGated(const std::string& preemptor_uid) {
  if (GateOf(preemptor_uid) == nullptr) state_.queue.Release(preemptor_uid);
}

}  // namespace outboard::scheduler
