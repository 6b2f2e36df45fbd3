// What the scheduler does for a pod that fits nowhere: asks who could leave, and has them leave.
#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {

namespace {

// Codes of nodes as the hosts gave them together; empty: one host judged alone.
using CodeBySlot = absl::flat_hash_map<uint32_t, v1alpha1::Code>;

bool MayHelp(const v1alpha1::JudgedNodes& judged, const CodeBySlot& codes, uint32_t slot) {
  const auto it = codes.find(slot);
  return (it == codes.end() ? judged.others() : it->second) == v1alpha1::UNSCHEDULABLE;
}

v1alpha1::Hypothesis WithoutVictims(const v1alpha1::PreemptionCandidate& candidate) {
  v1alpha1::Hypothesis hypothesis;
  hypothesis.set_slot(candidate.slot());
  *hypothesis.mutable_removed_pod_uids() = candidate.victim_uids();
  return hypothesis;
}

// What kube-scheduler's plugins say of a state that their PreFilter did not write.
constexpr char kNoState[] = "not found";

// The plugin behind which no more were asked; empty: all were.
std::string PreFilterEndedAt(const v1alpha1::PreFilterResponse& answer) {
  if (answer.rejection().code() != v1alpha1::UNSCHEDULABLE_AND_UNRESOLVABLE) return "";
  // The one that left no node, if nodes ran out.
  if (answer.has_node_names() && !answer.restricted_by().empty())
    return *answer.restricted_by().rbegin();
  return answer.rejection().plugin();
}

void AppendReason(std::string* out, const SparedWord& word) { out->append(word.reason); }

}  // namespace

void Scheduler::PostFilter(std::unique_ptr<Attempt> attempt, Diagnosis diagnosis, absl::Time now) {
  const ProfilePlan& plan = *attempt->plan;
  const std::string ended_at = PreFilterEndedAt(algorithm_.response().pre_filter());
  const auto lacks_state = [&](const SparedWord& word) { return word.behind.contains(ended_at); };
  if (plan.algorithm.post_filter_plugins.empty() ||
      absl::c_any_of(plan.spared_before, lacks_state)) {
    diagnosis.post_filter_message = absl::c_any_of(plan.spared_before, lacks_state)
                                        ? kNoState
                                        : absl::StrJoin(plan.spared_before, ", ", AppendReason);
    return FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  AttemptHosts hosts;
  for (size_t i = 0; i < plan.num_algorithm_hosts(); ++i) {
    Host* const host = UsableHost(plan.host_names[i]);
    if (host == nullptr) {
      // One of PostFilter's, or one that can be done without.
      hosts.push_back({nullptr, 0});
    } else {
      hosts.push_back({host->client, cluster_.VersionOf(host->cursor)});
    }
  }
  const absl::Time began = absl::Now();
  HostPanel panel(&hosts, &plan.algorithm, attempt->id, began + options_.cycle_deadline);
  PostFilterOutcome outcome;
  outcome.keeps_nomination = true;
  // Hosts in the order of their first plugins, until one helps or says that nothing can.
  for (const std::string& name : plan.post_filter_hosts) {
    const size_t asked = static_cast<size_t>(
        std::find(plan.host_names.begin(), plan.host_names.end(), name) - plan.host_names.begin());
    if (const auto it = plan.pre_filter_behind.find(name);
        it != plan.pre_filter_behind.end() && it->second.contains(ended_at)) {
      outcome.code = v1alpha1::ERROR;
      outcome.reasons = {kNoState};
      break;
    }
    outcome.silent_host = asked;
    outcome.status = AskPostFilter(*attempt, asked, hosts, &panel, &outcome);
    if (!outcome.status.ok() || outcome.code != v1alpha1::UNSCHEDULABLE) break;
  }
  observer_->OnCall(v1alpha1::POST_FILTER, plan.algorithm.name,
                    outcome.status.ok() ? outcome.code : v1alpha1::ERROR, absl::Now() - began);
  if (!outcome.status.ok()) {
    if (const HostClient* silent = hosts[outcome.silent_host].client; silent != nullptr)
      observer_->OnProtocolError(silent->info().host_instance(), outcome.status);
    return FailHostAway(std::move(attempt), plan.host_names[outcome.silent_host], outcome.status,
                        now);
  }
  diagnosis.post_filter_message = absl::StrJoin(outcome.reasons, ", ");
  if (outcome.code == v1alpha1::UNSCHEDULABLE) {
    std::vector<std::string> words;
    for (const SparedWord& word : plan.spared_before) words.push_back(word.reason);
    words.push_back(diagnosis.post_filter_message);
    for (const SparedWord& word : plan.spared_after) words.push_back(word.reason);
    diagnosis.post_filter_message =
        absl::c_any_of(plan.spared_after, lacks_state) ? kNoState : absl::StrJoin(words, ", ");
  }
  if (!outcome.candidate.has_value()) {
    // They may know better later.
    diagnosis.post_filter_plugins.insert(plan.algorithm.post_filter_plugins.begin(),
                                         plan.algorithm.post_filter_plugins.end());
    attempt->keeps_nomination = outcome.keeps_nomination;
    return FailUnschedulable(std::move(attempt), diagnosis, now);
  }
  Preempt(std::move(attempt), diagnosis, *outcome.candidate, now);
}

absl::Status Scheduler::AskPostFilter(const Attempt& attempt, size_t asked,
                                      const AttemptHosts& hosts, HostPanel* panel,
                                      PostFilterOutcome* outcome) {
  const AlgorithmProfile& profile = attempt.plan->algorithm;
  const bool alone = hosts.size() == 1;
  if (hosts[asked].client == nullptr) return absl::UnavailableError("the host is away");
  v1alpha1::PostFilterRequest request;
  request.mutable_header()->set_attempt_id(attempt.id);
  request.mutable_header()->set_snapshot_version(hosts[asked].version);
  request.mutable_header()->set_profile(profile.name);
  if (!alone) {
    *request.mutable_judged() = algorithm_.JudgedNodes();
    for (size_t host = 0; host < hosts.size(); ++host) {
      if (host != asked && !profile.shares[host].filter_plugins.empty())
        request.set_others_filter(true);
    }
  }
  absl::StatusOr<v1alpha1::PostFilterResponse> answer =
      hosts[asked].client->PostFilter(request, panel->deadline());
  while (answer.ok() && !answer->questions().empty()) {
    if (absl::Status checked = CheckQuestions(*answer, request.others_filter()); !checked.ok())
      return checked;
    absl::StatusOr<std::vector<v1alpha1::PluginStatus>> verdicts =
        panel->AnswerQuestions(answer->questions(), asked);
    if (!verdicts.ok()) {
      outcome->silent_host = panel->silent_host();
      return verdicts.status();
    }
    request.mutable_answers()->Assign(verdicts->begin(), verdicts->end());
    answer = hosts[asked].client->PostFilter(request, panel->deadline());
  }
  if (!answer.ok()) return answer.status();
  if (absl::Status checked = CheckPostFilter(*answer, profile.post_filter_plugins); !checked.ok())
    return checked;

  outcome->code = answer->rejection().code();
  const auto& reasons = answer->rejection().reasons();
  if (outcome->code != v1alpha1::UNSCHEDULABLE) outcome->reasons.clear();
  outcome->reasons.insert(outcome->reasons.end(), reasons.begin(), reasons.end());
  if (answer->clear_nomination()) outcome->keeps_nomination = false;
  if (answer->candidates().empty()) return absl::OkStatus();
  if (!request.others_filter()) {
    outcome->candidate = answer->candidates(0);
    return CheckVictims(*attempt.pod, answer->candidates(0));
  }
  // The first on which all hosts agree.
  CodeBySlot codes;
  for (int i = 0; i < request.judged().slots_size(); ++i) {
    codes[request.judged().slots(i)] = request.judged().codes(i);
  }
  google::protobuf::RepeatedPtrField<v1alpha1::Hypothesis> hypotheses;
  std::vector<const v1alpha1::PreemptionCandidate*> candidates;
  for (const v1alpha1::PreemptionCandidate& candidate : answer->candidates()) {
    if (absl::Status checked = CheckVictims(*attempt.pod, candidate); !checked.ok()) return checked;
    if (!MayHelp(request.judged(), codes, candidate.slot())) continue;
    *hypotheses.Add() = WithoutVictims(candidate);
    candidates.push_back(&candidate);
  }
  std::vector<std::vector<v1alpha1::PluginStatus>> objections;
  if (!candidates.empty()) {
    auto judged = panel->Judge(hypotheses, asked);
    if (!judged.ok()) {
      outcome->silent_host = panel->silent_host();
      return judged.status();
    }
    objections = *std::move(judged);
  }
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!objections[i].empty()) continue;
    outcome->candidate = *candidates[i];
    return absl::OkStatus();
  }
  outcome->code = v1alpha1::UNSCHEDULABLE;
  outcome->keeps_nomination = false;
  outcome->reasons.push_back(absl::StrCat("preemption: none of ", answer->candidates_size(),
                                          " candidates would fit by the word of all hosts"));
  return absl::OkStatus();
}

absl::Status Scheduler::CheckVictims(const kube::PodObject& preemptor,
                                     const v1alpha1::PreemptionCandidate& candidate) const {
  const auto wrong = [](auto... parts) {
    return absl::InternalError(absl::StrCat("PostFilter ", parts...));
  };
  const kube::NodePtr& node = cluster_.NodeAt(candidate.slot());
  if (node == nullptr) return wrong("names slot ", candidate.slot(), ", where no node is");
  std::set<std::string> nodes = {node->key()};
  for (const v1alpha1::Nomination& nomination : candidate.nominations()) {
    const kube::NodePtr& other = cluster_.NodeAt(nomination.slot());
    if (other == nullptr) return wrong("names slot ", nomination.slot(), ", where no node is");
    nodes.insert(other->key());
    const kube::PodPtr pod = cluster_.FindPod(nomination.pod_uid());
    if (pod == nullptr || !cluster_.NodeOf(pod->uid()).empty() ||
        pod->pod.scheduler_name() != preemptor.pod.scheduler_name() ||
        pod->uid() == preemptor.uid()) {
      return wrong("names a node for pod ", nomination.pod_uid(), ", which does not wait for one");
    }
  }
  for (const auto* uids : {&candidate.victim_uids(), &candidate.companion_uids()}) {
    const bool elsewhere = uids == &candidate.companion_uids();
    for (const std::string& uid : *uids) {
      const kube::PodPtr victim = cluster_.FindPod(uid);
      if (victim == nullptr) return wrong("wants to evict an unknown pod ", uid);
      const std::string place = cluster_.NodeOf(uid);
      if (elsewhere ? place.empty() : !nodes.contains(place)) {
        return wrong("wants to evict pod ", victim->key(), " from ",
                     elsewhere ? "any node" : absl::StrCat("node ", node->key()),
                     ", but it is on \"", place, "\"");
      }
      if (victim->pod.priority() >= preemptor.pod.priority()) {
        return wrong("wants to evict pod ", victim->key(), " of priority ", victim->pod.priority(),
                     " for one of priority ", preemptor.pod.priority());
      }
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
  bool last_makes_room = false;
  // Companions first: whoever waits for the last to go waits for room on the node.
  for (const auto* uids : {&candidate.companion_uids(), &candidate.victim_uids()}) {
    for (const std::string& uid : *uids) {
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
        last_makes_room = uids == &candidate.victim_uids();
      }
    }
  }
  for (const v1alpha1::Nomination& nomination : candidate.nominations())
    preemption.members.push_back(nomination.pod_uid());
  // All room on the node comes without any eviction; those of companions go on beside it.
  if (!last_makes_room) preemption.gate.clear();
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
  for (const v1alpha1::Nomination& nomination : candidate.nominations()) {
    const queue::QueuedPod* const member = queue_.Find(nomination.pod_uid());
    if (member == nullptr) continue;  // It will not be tried again.
    const std::string& node_name = cluster_.NodeAt(nomination.slot())->key();
    cluster_.Nominate(member->uid(), nomination.slot()).IgnoreError();
    effects_->PatchStatus(*member->pod, std::nullopt, node_name, now);
    ClearLowerNominations(*order.preemptor, node_name, now);
  }
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
  std::vector<std::string> preemptors = preemption->members;
  preemptors.push_back(preemption->preemptor->uid());
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
      preemptions_.EvictionEnded(preemption_id, end == EvictEnd::kFailed,
                                 end == EvictEnd::kEvicted && !IsLeaving(victim->uid()));
  for (const kube::PodPtr& next : step.evict) {
    effects_->Evict({preemption_id, next, preemption->profile}, now);
  }
  for (const std::string& uid : preemptors) ReleaseUnlessGated(uid);
  // No event may come that would bring the pods back, so they are tried at once.
  if (step.failed) queue_.Activate(preemptors, now);
}

const std::string* Scheduler::PreemptionGateOf(const std::string& uid) const {
  return preemptions_.GateOf(uid, [this](const std::string& victim) { return IsLeaving(victim); });
}

bool Scheduler::IsLeaving(const std::string& uid) const {
  const kube::PodPtr pod = cluster_.FindPod(uid);
  return pod == nullptr || (pod->pod.deletion_unix_seconds() != 0 && !pod->vanishes);
}

void Scheduler::ReleasePreemptorsOf(const std::string& victim_uid) {
  if (!IsLeaving(victim_uid)) return;
  for (const std::string& uid : preemptions_.VictimLeft(victim_uid)) ReleaseUnlessGated(uid);
}

void Scheduler::ReleaseUnlessGated(const std::string& preemptor_uid) {
  if (PreemptionGateOf(preemptor_uid) == nullptr) queue_.Release(preemptor_uid);
}

}  // namespace outboard::cycle
