// The ways in which an attempt fails, and what is due later.
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
namespace {

using queue::QueuedPod;
using v1alpha1::CallError;

constexpr char kUnschedulable[] = "Unschedulable";
constexpr char kSchedulerError[] = "SchedulerError";
// How often pods that were parked though their host is there (it was slow, or answered nonsense)
// get another chance.
constexpr absl::Duration kParkedPodsRetry = absl::Seconds(1);
// The same for pods whose sort keys a host did not say.
constexpr absl::Duration kSortKeysRetry = absl::Seconds(1);
// See queue_sort.proto.
constexpr size_t kMaxSortKeys = 4096;
constexpr size_t kMaxSortKeyBytes = 64;

queue::SchedulingQueue::Rejectors RejectorsOf(const Diagnosis& diagnosis) {
  queue::SchedulingQueue::Rejectors rejectors;
  rejectors.unschedulable.insert(diagnosis.unschedulable_plugins.begin(),
                                 diagnosis.unschedulable_plugins.end());
  rejectors.pending.insert(diagnosis.pending_plugins.begin(), diagnosis.pending_plugins.end());
  rejectors.post_filter.insert(diagnosis.post_filter_plugins.begin(),
                               diagnosis.post_filter_plugins.end());
  return rejectors;
}

// Errors after which the connection's state, not the pod, has to be mended: a new handshake does.
bool NeedsNewSession(const absl::Status& status) {
  switch (CallErrorReason(status)) {
    case CallError::SESSION_UNKNOWN:
    case CallError::WRONG_INSTANCE:
    case CallError::NOT_CONFIGURED:
    case CallError::OBJECT_UNKNOWN:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Scheduler::FailUnschedulable(std::unique_ptr<Attempt> attempt, const Diagnosis& diagnosis,
                                  absl::Time now) {
  const std::string message = FitErrorMessage(diagnosis);
  VLOG(2) << "Unable to schedule pod " << attempt->pod->key() << "; no fit; waiting: " << message;
  attempt->diagnosis = diagnosis;
  const std::vector<std::string> others = std::move(attempt->rejected_with);
  const ProfilePlan& plan = *attempt->plan;
  const absl::Duration elapsed = attempt->elapsed;
  // Those that are to have nodes now hear of them afterwards.
  const bool keep_nominations = attempt->keeps_nomination || !attempt->nominated_node.empty();
  RequeueFailed(std::move(attempt), AttemptResult::kUnschedulable, message, now);
  for (const std::string& uid : others) {
    std::unique_ptr<Attempt> other = TakeWithOthers(uid, plan, now);
    if (other == nullptr) continue;
    observer_->OnAlgorithm(*other->pod, plan.algorithm, algorithm_.result(), algorithm_.response(),
                           elapsed);
    other->diagnosis = diagnosis;
    other->keeps_nomination = keep_nominations;
    RequeueFailed(std::move(other), AttemptResult::kUnschedulable, message, now);
  }
}

void Scheduler::FailNoNodes(std::unique_ptr<Attempt> attempt, absl::Time now) {
  VLOG(2) << "Unable to schedule pod " << attempt->pod->key()
          << "; no nodes are registered to the cluster; waiting";
  RequeueFailed(std::move(attempt), AttemptResult::kUnschedulable, kNoNodesAvailable, now);
}

void Scheduler::FailError(std::unique_ptr<Attempt> attempt, const std::string& message,
                          absl::Time now) {
  LOG(ERROR) << "Error scheduling pod " << attempt->pod->key() << "; retrying: " << message;
  RequeueFailed(std::move(attempt), AttemptResult::kError, message, now);
}

void Scheduler::FailHostAway(std::unique_ptr<Attempt> attempt, const std::string& host_name,
                             const absl::Status& status, absl::Time now) {
  const std::string message =
      absl::StrCat("plugin host \"", host_name, "\" gave no answer: ", status.message());
  LOG(WARNING) << "Pod " << attempt->pod->key() << " is parked: " << message;
  Host& host = hosts_[host_name];
  if (NeedsNewSession(status)) host.wants_new_session = true;
  if (host.client != nullptr && !host.held_back())
    OnCallFailed(host_name, &Host::breaker, status, now);
  attempt->silent_host = host_name;
  RequeueFailed(std::move(attempt), AttemptResult::kHostAway, message, now);
}

void Scheduler::TellOfGates(const std::string& name, Host* host, absl::Time now) {
  const std::string message =
      absl::StrCat("plugin host \"", name, "\" gave no answer: the host is away");
  for (const std::string& uid : std::exchange(host->gates_owed, {})) {
    const QueuedPod* const pod = queue_.Find(uid);
    if (pod == nullptr || pod->place != queue::Place::kParked) continue;
    LOG(WARNING) << "Pod " << pod->pod->key() << " is parked: " << message;
    effects_->RecordFailed(*pod->pod, pod->pod->pod.scheduler_name(), message, now);
    effects_->PatchStatus(*pod->pod, PodScheduledFalse{kSchedulerError, message}, std::nullopt,
                          now);
  }
}

void Scheduler::OnCallFailed(const std::string& name, Breaker Host::*breaker,
                             const absl::Status& status, absl::Time now) {
  Host& host = hosts_[name];
  observer_->OnNoAnswer(host.client->info().host_instance(), status);
  if (NeedsNewSession(status)) host.wants_new_session = true;
  if (!(host.*breaker).OnFailure()) return;
  host.away_since = now;
  LOG(ERROR) << "Host \"" << name << "\" has given no usable answer to "
             << options_.breaker_failures << " calls in a row and is not asked until it has "
             << "answered a probe; the last: " << status.message();
}

bool Scheduler::IsHeldBack(const std::string& host_name) const {
  const auto it = hosts_.find(host_name);
  return it != hosts_.end() && it->second.client != nullptr && it->second.held_back();
}

void Scheduler::OnProbeAnswered(const std::string& host_name, absl::Time now) {
  const auto it = hosts_.find(host_name);
  if (it == hosts_.end()) return;
  const bool attempts_were = it->second.breaker.OnProbeAnswered();
  const bool queue_was = it->second.queue_breaker.OnProbeAnswered();
  if (!attempts_were && !queue_was) return;
  LOG(INFO) << "Host \"" << host_name << "\" has answered a probe and is asked again";
  it->second.away_since = absl::InfinitePast();
  queue_.HostReturned(host_name, now);
}

void Scheduler::OnBadAnswer(const std::string& host_name, const absl::Status& status) {
  const Host& host = hosts_[host_name];
  if (host.client == nullptr) return;
  observer_->OnProtocolError(host.client->info().host_instance(), status);
  observer_->OnNoAnswer(host.client->info().host_instance(), status);
}

void Scheduler::RequeueFailed(std::unique_ptr<Attempt> attempt, AttemptResult result,
                              const std::string& message, absl::Time now) {
  const std::string uid = attempt->pod->uid();
  const std::string profile = attempt->plan == nullptr ? "" : attempt->plan->algorithm.name;
  EndAttempt(*attempt);
  observer_->OnAttemptEnd(*attempt->pod, profile, result, "", message, now - attempt->began);
  const kube::PodPtr current = cluster_.FindPod(uid);
  if (current == nullptr || !current->pod.node_name().empty() || options_.single_attempt) {
    VLOG(2) << "Pod " << attempt->pod->key()
            << " is not queued again: " << (current == nullptr ? "it is gone" : "it has a node");
    queue_.Forget(uid);
    if (current == nullptr || !current->pod.node_name().empty()) return;
  } else {
    // Whose victims leave is tried again in any case.
    const bool in_vain = result == AttemptResult::kUnschedulable &&
                         attempt->nominated_node.empty() && !attempt->keeps_nomination &&
                         attempt->node_name.empty();
    const bool requeued = result == AttemptResult::kHostAway
                              ? queue_.Park(uid, attempt->silent_host, now)
                              : queue_.AddUnschedulable(uid, RejectorsOf(attempt->diagnosis), now);
    if (!requeued) return;
    if (in_vain) vain_attempts_.Failed(uid, now);
  }
  const std::optional<std::string> nominated = RenewNomination(*attempt, *current, result);
  effects_->RecordFailed(*current, profile, message, now);
  effects_->PatchStatus(
      *current,
      PodScheduledFalse{result == AttemptResult::kUnschedulable ? kUnschedulable : kSchedulerError,
                        message},
      nominated, now);
}

std::optional<std::string> Scheduler::RenewNomination(const Attempt& attempt,
                                                      const kube::PodObject& current,
                                                      AttemptResult result) {
  // Hosts are told at once: the API server's word takes a moment.
  const bool stays = attempt.keeps_nomination || result == AttemptResult::kHostAway;
  const std::string& in_status = current.pod.nominated_node_name();
  // One that its group's preemption gave it a moment ago is not in the status yet.
  if (stays && in_status.empty()) return std::nullopt;
  const std::string& node = stays ? in_status : attempt.nominated_node;
  const uint32_t slot = cluster_.SlotOf(node);
  if (slot == ClusterState::kNoSlot) {
    cluster_.Unnominate(current.uid()).IgnoreError();
  } else {
    cluster_.Nominate(current.uid(), slot).IgnoreError();
  }
  if (node == in_status) return std::nullopt;
  return node;
}

// --- What is due
// -----------------------------------------------------------------------------------------------------------------

void Scheduler::TakePushes(const std::string& host_name, Host* host, absl::Time now) {
  for (const v1alpha1::SyncResponse& push : host->client->TakePushes()) {
    switch (push.push_case()) {
      case v1alpha1::SyncResponse::kWaitDecision: {
        if (absl::Status bad = CheckDecision(push.wait_decision()); !bad.ok()) {
          OnBadAnswer(host_name, bad);
          break;
        }
        google::protobuf::RepeatedPtrField<v1alpha1::WaitDecision> decisions;
        *decisions.Add() = push.wait_decision();
        ApplyDecisions(decisions, now);
        break;
      }
      case v1alpha1::SyncResponse::kGateChanged: {
        const auto& uids = push.gate_changed().pod_uids();
        if (uids.empty()) {
          queue_.RecheckGates([](const QueuedPod&) { return true; }, now);
        } else {
          queue_.RecheckGates(std::vector<std::string>(uids.begin(), uids.end()), now);
        }
        break;
      }
      case v1alpha1::SyncResponse::kSortKeysChanged: {
        std::vector<kube::PodPtr> changed;
        for (const std::string& uid : push.sort_keys_changed().pod_uids()) {
          if (const QueuedPod* info = queue_.Find(uid)) changed.push_back(info->pod);
        }
        if (push.sort_keys_changed().pod_uids().empty())
          queue_.ForEach([&](const QueuedPod& info) { changed.push_back(info.pod); });
        UpdateSortKeys(changed, now);
        break;
      }
      case v1alpha1::SyncResponse::kAck:
        // The client passes on only what cannot be.
        OnBadAnswer(host_name, absl::InternalError(absl::StrCat("The host acknowledges version ",
                                                                push.ack().version(),
                                                                ", which it was not sent")));
        break;
      case v1alpha1::SyncResponse::kWakes:
        TakeWakes(*host, push.wakes(), now);
        break;
      case v1alpha1::SyncResponse::kActivate: {
        if (push.activate().plugin().empty()) break;
        std::vector<std::string> uids;
        for (const std::string& uid : push.activate().pod_uids()) {
          // What the host says of those that follow others is out of date.
          if (!vain_attempts_.Holds(uid)) uids.push_back(uid);
        }
        queue_.Activate(uids, now, push.activate().plugin());
        break;
      }
      case v1alpha1::SyncResponse::kEffect:
        TakeOwnEffect(host_name, host, push.effect(), now);
        break;
      case v1alpha1::SyncResponse::kResync:
        LOG(WARNING) << "Host asks for a new snapshot: " << push.resync().reason();
        host->wants_new_session = true;
        break;
      default:
        break;
    }
  }
  host->pushes_from = host->client->acknowledged_version();
}

void Scheduler::Tick(absl::Time now) {
  for (auto& [name, host] : hosts_) {
    if (host.is_here()) {
      if (queue_.counts().parked == 0) host.gates_owed.clear();
    } else if (!host.gates_owed.empty() && now - host.away_since >= options_.host_grace) {
      TellOfGates(name, &host, now);
    }
    if (host.client == nullptr) continue;
    TakePushes(name, &host, now);
    if (!host.is_here()) continue;
    AskForOwedSortKeys(&host, now);
    if (queue_.counts().parked > 0 && now - host.parked_pods_checked >= kParkedPodsRetry) {
      host.parked_pods_checked = now;
      queue_.HostReturned(name, now);
    }
  }
  while (auto end = waiting_.TakeExpired(now)) EndWait(*end, now);
  AskForConfirmations(now);
  while (!pre_bind_questions_.empty() && pre_bind_questions_.begin()->first <= now) {
    const uint64_t attempt_id = pre_bind_questions_.extract(pre_bind_questions_.begin()).mapped();
    if (const auto it = attempts_.find(attempt_id); it != attempts_.end()) {
      AskPreBind(it->second.get(), now);
    }
  }
  for (const auto& object : cluster_.WrittenAndNeverSeen(now)) OnObjectDelete(object, now);
  queue_.FlushDue(now);
  SendHints(now);
  SendToKeepers(now);
}

absl::Time Scheduler::NextWakeup(absl::Time now) const {
  absl::Time next = std::min({waiting_.NextDeadline(), queue_.NextWakeup(), NextSendToKeepers()});
  if (!pre_bind_questions_.empty()) next = std::min(next, pre_bind_questions_.begin()->first);
  if (!confirmations_.empty()) next = std::min(next, confirmations_.front().due);
  if (queue_.counts().parked > 0) next = std::min(next, now + kParkedPodsRetry);
  for (const auto& [name, host] : hosts_) {
    if (host.is_here() && !host.sort_keys_owed.empty())
      next = std::min(next, std::max(now, host.sort_keys_asked + kSortKeysRetry));
    if (!host.is_here() && !host.gates_owed.empty())
      next = std::min(next, std::max(now, host.away_since + options_.host_grace));
    if ((host.client == nullptr || host.held_back()) && host.away_since > absl::InfinitePast() &&
        queue_.HasNext()) {
      next = std::min(next, std::max(now, host.away_since + options_.host_grace));
    }
  }
  return next;
}

// --- The queue's questions
// -------------------------------------------------------------------------------------------------------

std::vector<queue::GateVerdict> Scheduler::Judge(absl::Span<const QueuedPod* const> pods,
                                                 absl::Time now) {
  std::vector<queue::GateVerdict> verdicts(pods.size());
  // One call for each profile and host that have something to ask.
  std::map<std::pair<const ProfilePlan*, const PointShare*>, std::vector<size_t>> questions;
  for (size_t i = 0; i < pods.size(); ++i) {
    if (const std::string* gate = PreemptionGateOf(pods[i]->uid())) {
      verdicts[i].kind = queue::GateVerdict::Kind::kGated;
      verdicts[i].plugin = *gate;
      verdicts[i].message = kPreemptionUnderWay;
      continue;
    }
    const ProfilePlan* plan = PlanOf(*pods[i]->pod);
    if (plan == nullptr) continue;
    for (const PointShare& share : plan->pre_enqueue) {
      if (AnyConcerns(share.plugins, pods[i]->pod->pod, cluster_.device_class_resources()))
        questions[{plan, &share}].push_back(i);
    }
  }
  // The plugin that stands first in the profile is the one that keeps a pod out.
  std::vector<size_t> positions(pods.size());
  for (const auto& [asked, indices] : questions) {
    const auto& [plan, share] = asked;
    Host* host = UsableHost(share->host_name);
    absl::StatusOr<v1alpha1::PreEnqueueResponse> answer =
        absl::UnavailableError("the host is away");
    if (host != nullptr) {
      SendChanges(host, now);
      v1alpha1::PreEnqueueRequest request;
      request.mutable_header()->set_snapshot_version(cluster_.VersionOf(host->cursor));
      request.mutable_header()->set_profile(plan->algorithm.name);
      for (const size_t i : indices) request.add_pod_uids(pods[i]->uid());
      answer = host->client->PreEnqueue(std::move(request), absl::Now() + options_.queue_deadline);
    }
    if (answer.ok() && answer->verdicts_size() != static_cast<int>(indices.size())) {
      answer = absl::InternalError("PreEnqueue answered for another number of pods");
      observer_->OnProtocolError(host->client->info().host_instance(), answer.status());
    }
    for (int k = 0; answer.ok() && k < answer->verdicts_size(); ++k) {
      if (absl::Status bad = CheckGate(answer->verdicts(k), *share); !bad.ok()) {
        answer = bad;
        observer_->OnProtocolError(host->client->info().host_instance(), bad);
      }
    }
    if (answer.ok()) {
      host->queue_breaker.OnAnswer();
    } else if (host != nullptr) {
      OnCallFailed(share->host_name, &Host::queue_breaker, answer.status(), now);
    }
    auto& owed = hosts_[share->host_name].gates_owed;
    for (size_t k = 0; k < indices.size(); ++k) {
      using Kind = queue::GateVerdict::Kind;
      const std::string& uid = pods[indices[k]]->uid();
      queue::GateVerdict& verdict = verdicts[indices[k]];
      if (answer.ok()) owed.erase(uid);
      if (verdict.kind == Kind::kUnavailable) continue;
      if (!answer.ok()) {
        verdict = {Kind::kUnavailable, "", "", share->host_name};
        owed.insert(uid);
        continue;
      }
      const v1alpha1::PluginStatus& status = answer->verdicts(static_cast<int>(k));
      if (status.code() == v1alpha1::SUCCESS) continue;
      const size_t position = share->PositionOf(status.plugin());
      if (verdict.kind == Kind::kGated && positions[indices[k]] <= position) continue;
      positions[indices[k]] = position;
      verdict = {Kind::kGated, status.plugin(), absl::StrJoin(status.reasons(), ", "), ""};
    }
  }
  return verdicts;
}

void Scheduler::UpdateSortKeys(absl::Span<const kube::PodPtr> pods, absl::Time now) {
  std::map<const ProfilePlan*, std::vector<const kube::PodObject*>> questions;
  for (const kube::PodPtr& pod : pods) {
    const ProfilePlan* plan = PlanOf(*pod);
    if (plan != nullptr && !plan->sort_host.empty()) questions[plan].push_back(pod.get());
  }
  for (const auto& [plan, asked] : questions) {
    for (size_t begin = 0; begin < asked.size(); begin += kMaxSortKeys) {
      const size_t end = std::min(asked.size(), begin + kMaxSortKeys);
      Host* const host = UsableHost(plan->sort_host);
      if (host == nullptr) {
        for (size_t i = begin; i < end; ++i)
          hosts_[plan->sort_host].sort_keys_owed.insert(asked[i]->uid());
        continue;
      }
      SendChanges(host, now);
      v1alpha1::SortKeysRequest request;
      request.mutable_header()->set_snapshot_version(cluster_.VersionOf(host->cursor));
      request.mutable_header()->set_profile(plan->algorithm.name);
      for (size_t i = begin; i < end; ++i) request.add_pod_uids(asked[i]->uid());
      const auto answer =
          host->client->SortKeys(std::move(request), absl::Now() + options_.queue_deadline);
      const bool usable = answer.ok() && answer->keys_size() == static_cast<int>(end - begin);
      if (usable) {
        host->queue_breaker.OnAnswer();
      } else {
        OnCallFailed(
            plan->sort_host, &Host::queue_breaker,
            answer.ok() ? absl::InternalError("SortKeys answered for other pods") : answer.status(),
            now);
      }
      for (size_t i = begin; i < end; ++i) {
        const std::string* key = usable ? &answer->keys(static_cast<int>(i - begin)) : nullptr;
        if (key != nullptr && key->size() <= kMaxSortKeyBytes) {
          queue_.SetSortKey(asked[i]->uid(), *key);
        } else {
          host->sort_keys_owed.insert(asked[i]->uid());
        }
      }
    }
  }
}

void Scheduler::AskForOwedSortKeys(Host* host, absl::Time now) {
  if (host->sort_keys_owed.empty() || now - host->sort_keys_asked < kSortKeysRetry) return;
  host->sort_keys_asked = now;
  std::vector<kube::PodPtr> owed;
  for (const std::string& uid : std::exchange(host->sort_keys_owed, {})) {
    if (const QueuedPod* info = queue_.Find(uid)) owed.push_back(info->pod);
  }
  UpdateSortKeys(owed, now);
}

}  // namespace outboard::cycle
