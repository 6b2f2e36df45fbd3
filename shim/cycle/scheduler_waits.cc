// Waits at Permit: how they begin, go on when hosts are replaced, and end.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {
namespace {

using queue::QueuedPod;

// Within which a host that takes another's place has to say what becomes of pods that wait.
constexpr absl::Duration kConfirmDeadline = absl::Seconds(1);
// So many at a time, since cycles wait meanwhile.
constexpr int kConfirmationsAtOnce = 4;
// From an answer that was of no use to the next question.
constexpr absl::Duration kConfirmRetry = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<v1alpha1::PermitResponse> Scheduler::AskPermit(Attempt* attempt,
                                                              const PointShare& share, bool resumed,
                                                              absl::Time now) {
  Host* host = UsableHost(share.host_name);
  if (host == nullptr) return absl::UnavailableError("the host is away");
  SendChanges(host, now);
  v1alpha1::PermitRequest request;
  FillHeader(*attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt->pod->uid());
  request.set_node_name(attempt->node_name);
  request.set_resumed(resumed);
  const absl::Time began = absl::Now();
  NoteCall(attempt, *host->client);
  absl::StatusOr<v1alpha1::PermitResponse> answer =
      host->client->Permit(std::move(request), absl::Now() + options_.permit_deadline);
  observer_->OnCall(v1alpha1::PERMIT, attempt->plan->algorithm.name,
                    answer.ok() ? answer->rejection().code() : v1alpha1::ERROR,
                    absl::Now() - began);
  if (!answer.ok()) return answer;
  if (absl::Status bad = CheckPermit(*answer, share); !bad.ok()) {
    observer_->OnProtocolError(host->client->info().host_instance(), bad);
    return bad;
  }
  return answer;
}

void Scheduler::Permit(std::unique_ptr<Attempt> attempt, absl::Time now) {
  v1alpha1::PermitResponse permit;  // of all hosts
  for (const PointShare& share : attempt->plan->permit) {
    if (!AnyConcerns(share.plugins, attempt->pod->pod, cluster_.device_class_resources())) continue;
    absl::StatusOr<v1alpha1::PermitResponse> answer = AskPermit(attempt.get(), share, false, now);
    if (!answer.ok() && share.is_open) {
      observer_->OnFailurePolicy(share.host_name, v1alpha1::PERMIT, "FailOpen");
      continue;
    }
    if (!answer.ok()) {
      GiveBack(attempt.get(), "permit was not answered", now);
      FailHostAway(std::move(attempt), share.host_name, answer.status(), now);
      return ApplyDecisions(permit.decisions(), now);
    }
    for (const v1alpha1::PermitWait& wait : answer->waits()) {
      VLOG(4) << "Pod " << attempt->pod->key() << " has to wait on permit for " << wait.plugin()
              << " of host \"" << share.host_name << "\"";
    }
    permit.MergeFrom(*answer);
    if (permit.has_rejection()) break;
  }
  if (permit.has_rejection()) {
    GiveBack(attempt.get(), "permit was rejected", now);
    if (permit.rejection().code() == v1alpha1::ERROR) {
      FailError(std::move(attempt), absl::StrJoin(permit.rejection().reasons(), ", "), now);
    } else {
      FailUnschedulable(std::move(attempt), DiagnosisOfRejectedNode(permit.rejection()), now);
    }
    return ApplyDecisions(permit.decisions(), now);
  }
  Attempt* const pending = attempt.get();
  pending->binding = true;
  VLOG(2) << "Pod " << pending->pod->key() << " goes to node " << pending->node_name << ": attempt "
          << pending->id << " of " << absl::StrJoin(pending->asked, ", ") << ", "
          << absl::Now() - pending->info->timestamp << " after it was queued, of which "
          << absl::Now() - pending->began << " in this cycle, "
          << absl::Now() - pending->info->initial_attempt_time.value_or(pending->began)
          << " after it was first tried";
  attempt_of_pod_[pending->pod->uid()] = pending->id;
  attempts_[pending->id] = std::move(attempt);
  if (!permit.waits().empty() || !pending->effects.empty()) {
    // Others (a cluster autoscaler) learn where it is about to go.
    effects_->PatchStatus(*pending->pod, std::nullopt, pending->node_name, now);
  }
  if (permit.waits().empty()) {
    BeginBinding(pending, now);
  } else if (auto end = waiting_.Add(pending->id, pending->pod->uid(), permit, now)) {
    EndWait(*end, now);
  } else {
    cluster_.SetWaiting(pending->pod->uid(), pending->id, waiting_.Describe(pending->id), now)
        .IgnoreError();
  }
  ApplyDecisions(permit.decisions(), now);
}

void Scheduler::ApplyDecisions(
    const google::protobuf::RepeatedPtrField<v1alpha1::WaitDecision>& decisions, absl::Time now) {
  for (const v1alpha1::WaitDecision& decision : decisions) {
    // A decision about an attempt that is over, or was never begun, says nothing; nor does one in
    // the name of a plugin that has no say about places.
    const auto it = attempts_.find(decision.attempt_id());
    if (it == attempts_.end() || !CheckDecision(decision).ok()) continue;
    const auto has_say = [&](const PointShare& share) {
      return absl::c_any_of(share.plugins, [&](const InterestedPlugin& plugin) {
        return plugin.name == decision.plugin();
      });
    };
    if (!absl::c_any_of(it->second->plan->permit, has_say) &&
        !absl::c_any_of(it->second->plan->reserve, has_say)) {
      continue;
    }
    if (auto end = waiting_.Decide(decision, now)) EndWait(*end, now);
  }
}

void Scheduler::EndWait(const WaitEnd& end, absl::Time now) {
  const auto it = attempts_.find(end.attempt_id);
  if (it == attempts_.end()) return;
  Attempt* const attempt = it->second.get();
  observer_->OnPermitWaitEnd(*attempt->pod, end.waited,
                             end.allowed     ? v1alpha1::SUCCESS
                             : end.preempted ? v1alpha1::ERROR
                                             : v1alpha1::UNSCHEDULABLE);
  if (end.allowed) {
    cluster_.EndWaiting(attempt->pod->uid()).IgnoreError();
    return BeginBinding(attempt, now);
  }
  VLOG(4) << "Pod " << attempt->pod->key() << " rejected while waiting on permit: " << end.message;
  std::unique_ptr<Attempt> taken = TakeAttempt(end.attempt_id);
  GiveBack(taken.get(), end.message, now);
  if (end.preempted) {
    queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
    return FailError(std::move(taken), absl::StrCat("waiting on permit for pod: ", end.message),
                     now);
  }
  v1alpha1::PluginStatus status;
  status.set_plugin(end.plugin);
  status.set_code(v1alpha1::UNSCHEDULABLE);
  status.add_reasons(end.message);
  const std::string uid = taken->pod->uid();
  FailUnschedulable(std::move(taken), DiagnosisOfRejectedNode(status), now);
  // The room it gave back may help others, but not itself.
  queue_.MoveAllToActiveOrBackoff(
      queue::AssignedPodDelete(), [&uid](const QueuedPod& other) { return other.uid() != uid; },
      now);
}

// --- A host that takes another's place
// -----------------------------------------------------------------------------------------------

void Scheduler::ForgetConfirmations(const std::string& host_name) {
  std::erase_if(confirmations_,
                [&](const Confirmation& open) { return open.host_name == host_name; });
}

void Scheduler::AwaitConfirmations(const std::string& host_name, absl::Time now) {
  for (const auto& [id, attempt] : attempts_) {
    if (!waiting_.Waits(id)) continue;
    for (const PointShare& share : attempt->plan->permit) {
      if (share.host_name == host_name &&
          AnyConcerns(share.plugins, attempt->pod->pod, cluster_.device_class_resources()))
        confirmations_.push_back({id, host_name, &share, now, now + kConfirmDeadline});
    }
  }
  // Who waits longest is asked first.
  std::sort(
      confirmations_.begin(), confirmations_.end(),
      [](const Confirmation& a, const Confirmation& b) { return a.attempt_id < b.attempt_id; });
}

void Scheduler::AskForConfirmations(absl::Time now) {
  for (int asked = 0; asked < kConfirmationsAtOnce && !confirmations_.empty(); ++asked) {
    if (confirmations_.front().due > now) return;
    Confirmation open = confirmations_.front();
    confirmations_.pop_front();
    const auto it = attempts_.find(open.attempt_id);
    // The wait may have ended for another reason.
    if (it == attempts_.end() || !waiting_.Waits(open.attempt_id)) continue;
    Attempt* const attempt = it->second.get();
    absl::StatusOr<v1alpha1::PermitResponse> answer =
        AskPermit(attempt, *open.share, /*resumed=*/true, now);
    if (answer.ok()) {
      Confirm(attempt, *open.share, *answer, now);
      continue;
    }
    if (now < open.give_up) {
      open.due = std::min(now + kConfirmRetry, open.give_up);
      confirmations_.push_back(open);
      return;
    }
    if (open.share->is_open) {
      observer_->OnFailurePolicy(open.host_name, v1alpha1::PERMIT, "FailOpen");
      Confirm(attempt, *open.share, v1alpha1::PermitResponse(), now);
      continue;
    }
    LOG(WARNING) << "Pod " << attempt->pod->key() << " waited on permit, which host \""
                 << open.host_name << "\", replaced meanwhile, did not confirm within "
                 << kConfirmDeadline << ": " << answer.status().message();
    waiting_.Drop(open.attempt_id);
    std::unique_ptr<Attempt> taken = TakeAttempt(open.attempt_id);
    GiveBack(taken.get(), "the wait was not confirmed", now);
    FailHostAway(std::move(taken), open.host_name, answer.status(), now);
  }
}

void Scheduler::Confirm(Attempt* attempt, const PointShare& share,
                        const v1alpha1::PermitResponse& answer, absl::Time now) {
  VLOG(2) << "Pod " << attempt->pod->key() << " waits on permit, and host \"" << share.host_name
          << "\", replaced meanwhile, "
          << (answer.has_rejection()   ? "rejects it"
              : answer.waits().empty() ? "lets it go"
                                       : "goes on waiting for it");
  if (answer.has_rejection() && answer.rejection().code() == v1alpha1::ERROR) {
    waiting_.Drop(attempt->id);
    std::unique_ptr<Attempt> taken = TakeAttempt(attempt->id);
    GiveBack(taken.get(), "permit was rejected", now);
    FailError(std::move(taken), absl::StrJoin(answer.rejection().reasons(), ", "), now);
  } else if (answer.has_rejection()) {
    const auto& rejection = answer.rejection();
    if (auto end = waiting_.Reject(attempt->id, rejection.plugin(),
                                   absl::StrJoin(rejection.reasons(), ", "), now)) {
      EndWait(*end, now);
    }
  } else {
    std::vector<std::string> plugins;
    for (const InterestedPlugin& plugin : share.plugins) plugins.push_back(plugin.name);
    if (auto end = waiting_.Renew(attempt->id, plugins, answer, now)) {
      EndWait(*end, now);
    } else {
      cluster_.SetWaiting(attempt->pod->uid(), attempt->id, waiting_.Describe(attempt->id), now)
          .IgnoreError();
    }
  }
  ApplyDecisions(answer.decisions(), now);
}

}  // namespace outboard::cycle
