// What the scheduler does for a pod that fits nowhere: asks who could leave, and has them leave.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {

void Scheduler::PostFilter(std::unique_ptr<Attempt> attempt, Host* host, Diagnosis diagnosis,
                           absl::Time now) {
  const AlgorithmProfile& profile = attempt->plan->algorithm;
  if (profile.post_filter_plugins.empty()) {
    return FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  v1alpha1::PostFilterRequest request;
  FillHeader(*attempt, *host, request.mutable_header());
  const absl::Time began = absl::Now();
  const absl::StatusOr<v1alpha1::PostFilterResponse> answer =
      host->client->PostFilter(std::move(request), absl::Now() + options_.cycle_deadline);
  observer_->OnCall(v1alpha1::POST_FILTER, profile.name,
                    answer.ok() ? answer->rejection().code() : v1alpha1::ERROR,
                    absl::Now() - began);
  absl::Status usable = answer.status();
  if (usable.ok()) usable = CheckPostFilter(*answer, profile.post_filter_plugins);
  if (usable.ok() && !answer->candidates().empty()) {
    usable = CheckVictims(*attempt->pod, answer->candidates(0));
  }
  if (!usable.ok()) {
    observer_->OnProtocolError(host->client->info().host_instance(), usable);
    return FailHostAway(std::move(attempt), usable, now);
  }
  diagnosis.post_filter_message = absl::StrJoin(answer->rejection().reasons(), ", ");
  if (answer->candidates().empty()) {
    attempt->keeps_nomination = !answer->clear_nomination();
    return FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  Preempt(std::move(attempt), diagnosis, answer->candidates(0), now);
}

absl::Status Scheduler::CheckVictims(const kube::PodObject& preemptor,
                                     const v1alpha1::PreemptionCandidate& candidate) const {
  const auto wrong = [](auto... parts) {
    return absl::InternalError(absl::StrCat("PostFilter ", parts...));
  };
  const kube::NodePtr& node = cluster_.NodeAt(candidate.slot());
  if (node == nullptr) return wrong("names slot ", candidate.slot(), ", where no node is");
  for (const std::string& uid : candidate.victim_uids()) {
    const kube::PodPtr victim = cluster_.FindPod(uid);
    if (victim == nullptr) return wrong("wants to evict an unknown pod ", uid);
    if (const std::string place = cluster_.NodeOf(uid); place != node->key()) {
      return wrong("wants to evict pod ", victim->key(), " from node ", node->key(),
                   ", but it is on \"", place, "\"");
    }
    if (victim->pod.priority() >= preemptor.pod.priority()) {
      return wrong("wants to evict pod ", victim->key(), " of priority ", victim->pod.priority(),
                   " for one of priority ", preemptor.pod.priority());
    }
  }
  return absl::OkStatus();
}

void Scheduler::Preempt(std::unique_ptr<Attempt> attempt, const Diagnosis& diagnosis,
                        const v1alpha1::PreemptionCandidate& candidate, absl::Time now) {
  const ProfilePlan& plan = *attempt->plan;
  Preemption preemption;
  preemption.preemptor = attempt->pod;
  preemption.profile = plan.algorithm.name;
  preemption.node_name = cluster_.NodeAt(candidate.slot())->key();
  if (std::count(plan.preemption_gates.begin(), plan.preemption_gates.end(), candidate.plugin())) {
    preemption.gate = candidate.plugin();
  }
  std::vector<kube::PodPtr> victims;
  std::vector<kube::PodPtr> waiting;  // lose the place that they wait to get, at Permit or PreBind
  size_t leaving = 0;
  for (const std::string& uid : candidate.victim_uids()) {
    victims.push_back(cluster_.FindPod(uid));
    const auto victims_attempt = attempt_of_pod_.find(uid);
    if (victims.back()->pod.deletion_unix_seconds() != 0) {
      ++leaving;  // Nothing more to ask for.
    } else if ((victims_attempt != attempt_of_pod_.end() &&
                waiting_.Waits(victims_attempt->second)) ||
               FindInPreBind(uid) != nullptr) {
      waiting.push_back(victims.back());
    } else {
      preemption.victims.push_back(victims.back());
    }
  }
  VLOG(2) << "The target node for the preemption is determined: pod " << attempt->pod->key()
          << ", node " << preemption.node_name << ", " << victims.size() << " victims";
  observer_->OnPreemption(*attempt->pod, preemption.node_name, victims, victims.size() - leaving);

  const uint64_t id = attempt->id;
  const Preemption order = preemption;
  Preemptions::Step step;
  if (!preemption.victims.empty()) step = preemptions_.Begin(id, std::move(preemption));
  // The pod goes back first, so that it hears of everything that happens from now on.
  attempt->nominated_node = order.node_name;
  FailUnschedulable(std::move(attempt), diagnosis, now);
  if (victims.size() == leaving) return;
  ClearLowerNominations(*order.preemptor, order.node_name, now);
  for (const kube::PodPtr& victim : waiting) {
    const auto it = attempt_of_pod_.find(victim->uid());
    if (it == attempt_of_pod_.end()) continue;
    if (Attempt* in_pre_bind = FindInPreBind(victim->uid())) {
      VLOG(2) << "Preemptor " << order.preemptor->key()
              << " rejected a pod in preBind: " << victim->key() << " on node " << order.node_name;
      CancelPreBind(in_pre_bind, candidate.plugin(), now);
    } else if (auto end = waiting_.Preempt(it->second, candidate.plugin(), now)) {
      EndWait(*end, now);
    }
    effects_->RecordPreempted(*victim, order.profile, order.preemptor->uid(), order.node_name,
                              /*in_memory=*/true, now);
  }
  for (const kube::PodPtr& victim : step.evict) effects_->Evict({id, victim, order.profile}, now);
}

void Scheduler::ClearLowerNominations(const kube::PodObject& preemptor,
                                      const std::string& node_name, absl::Time now) {
  // Pods that had the node kept in mind may not fit any more: the sooner they look elsewhere the
  // better. Their news comes back through the informer.
  for (const kube::PodPtr& pod : cluster_.NominatedTo(node_name)) {
    if (pod->pod.priority() >= preemptor.pod.priority()) continue;
    if (pod->pod.nominated_node_name().empty()) continue;
    effects_->PatchStatus(*pod, std::nullopt, "", now);
  }
}

void Scheduler::OnEvictionEnded(uint64_t preemption_id, const kube::PodPtr& victim, EvictEnd end,
                                const std::string& message, absl::Time now) {
  const Preemption* preemption = preemptions_.Find(preemption_id);
  if (preemption == nullptr) return;
  const std::string preemptor = preemption->preemptor->key();
  switch (end) {
    case EvictEnd::kEvicted:
      VLOG(2) << "Pod " << preemptor << " preempted pod " << victim->key();
      effects_->RecordPreempted(*victim, preemption->profile, preemption->preemptor->uid(),
                                preemption->node_name, /*in_memory=*/false, now);
      break;
    case EvictEnd::kGone:
      VLOG(2) << "Victim pod " << victim->key() << " is already deleted";
      break;
    case EvictEnd::kFailed:
      LOG(ERROR) << "Pod " << preemptor << " could not preempt pod " << victim->key() << ": "
                 << message;
      break;
  }
  const Preemptions::Step step =
      preemptions_.EvictionEnded(preemption_id, end == EvictEnd::kFailed);
  for (const kube::PodPtr& next : step.evict) {
    effects_->Evict({preemption_id, next, preemption->profile}, now);
  }
  // No event may come that would bring the pod back, so it is tried at once.
  if (step.failed) queue_.Activate({step.over->preemptor->uid()}, now);
}

const std::string* Scheduler::PreemptionGateOf(const std::string& uid) const {
  return preemptions_.GateOf(uid, [this](const std::string& victim) {
    const kube::PodPtr pod = cluster_.FindPod(victim);
    return pod == nullptr || pod->pod.deletion_unix_seconds() != 0;
  });
}

}  // namespace outboard::cycle
