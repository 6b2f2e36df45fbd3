#include "shim/scheduler/binding_cycle.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/fail_point.h"
#include "shim/scheduler/cluster_event_handler.h"

namespace outboard::scheduler {
namespace {

// kube-scheduler's interval for checking volumes.
constexpr absl::Duration kPreBindInterval = absl::Seconds(1);

// The plugin of the current effect, or of the last one.
const std::string& PluginAtWork(const std::vector<v1beta1::Effect>& effects, size_t done) {
  return effects[std::min(done, effects.size() - 1)].plugin();
}

v1beta1::PluginStatus ErrorStatus(const std::string& plugin, absl::string_view message) {
  v1beta1::PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(v1beta1::CODE_ERROR);
  status.add_reasons(absl::StrCat("running PreBind plugin \"", plugin, "\": ", message));
  return status;
}

}  // namespace

void BindingCycle::Begin(Attempt* attempt, absl::Time now) {
  // No event from here on is relevant to a rejection of the pod.
  state_.queue.Done(attempt->pod->uid());
  if (attempt->effects.empty()) return Bind(attempt, now);
  WriteNextEffect(attempt, now);
}

void BindingCycle::WriteNextEffect(Attempt* attempt, absl::Time now) {
  v1beta1::Effect effect = attempt->effects[attempt->effect_results.size()];
  if (const std::string& after = effect.patch_object().after(); !after.empty()) {
    const auto created = absl::c_find_if(attempt->effect_results,
                                         [&](const auto& result) { return result.key() == after; });
    if (created != attempt->effect_results.end())
      effect.mutable_patch_object()->set_uid(created->uid());
  }
  OUTBOARD_FAIL_POINT(before_effect);
  state_.actions->Write({this, attempt->id, attempt->pod, std::move(effect)}, now);
}

void BindingCycle::OnEffectEnded(const EffectOrder& order, const EffectEnd& end, absl::Time now) {
  const uint64_t attempt_id = order.attempt_id;
  events_.OnObjectWritten(end, now);
  OUTBOARD_FAIL_POINT(effect_written);
  Attempt* const attempt = state_.attempts.Find(attempt_id);
  if (attempt == nullptr) return;
  if (!attempt->preempted_by.empty()) return FailPreempted(attempt, now);
  const v1beta1::Effect& effect = attempt->effects[attempt->effect_results.size()];
  if (!end.status.ok()) {
    return FailPreBind(attempt, ErrorStatus(effect.plugin(), end.status.message()), now);
  }
  v1beta1::EffectResult& result = attempt->effect_results.emplace_back();
  result.set_key(effect.key());
  result.set_resource_version(end.resource_version);
  result.set_uid(end.uid);
  if (attempt->effect_results.size() < attempt->effects.size() && !attempt->pod_gone) {
    return WriteNextEffect(attempt, now);
  }
  if (!attempt->asks_pre_bind && !attempt->pod_gone) return Bind(attempt, now);
  attempt->pre_bind_began = now;
  // Volumes are never ready within the first second; kube-scheduler waits as long.
  const bool volumes = absl::c_any_of(attempt->effects, [](const v1beta1::Effect& its) {
    return its.has_bind_volume() || its.has_select_node();
  });
  pre_bind_questions_.emplace(volumes ? now + kPreBindInterval : now, attempt_id);
}

void BindingCycle::Tick(absl::Time now) {
  while (!pre_bind_questions_.empty() && pre_bind_questions_.begin()->first <= now) {
    const uint64_t attempt_id = pre_bind_questions_.extract(pre_bind_questions_.begin()).mapped();
    if (Attempt* const attempt = state_.attempts.Find(attempt_id)) AskPreBind(attempt, now);
  }
}

absl::Time BindingCycle::NextWakeup() const {
  return pre_bind_questions_.empty() ? absl::InfiniteFuture() : pre_bind_questions_.begin()->first;
}

void BindingCycle::AskPreBind(Attempt* attempt, absl::Time now) {
  if (attempt->pod_gone) return FailPreBind(attempt, v1beta1::PluginStatus(), now);
  // Asks each host about its own effects, one host after the other. If a host has to wait, asks all
  // again later. Executed effects are not repeated.
  for (size_t i = 0; i < attempt->effects.size(); ++i) {
    const std::string& name = attempt->effect_hosts[i];
    if (i > 0 && attempt->effect_hosts[i - 1] == name) continue;
    absl::StatusOr<v1beta1::PreBindResponse> answer = host_calls_.PreBind(*attempt, name, now);
    if (answer.ok() && answer->has_rejection()) {
      return FailPreBind(attempt, answer->rejection(), now);
    }
    if (answer.ok() && !answer->wait()) continue;
    if (!answer.ok()) {
      VLOG(2) << "PreBind of pod " << attempt->pod->key() << " failed: host \"" << name
              << "\" did not answer: " << answer.status();
    }
    pre_bind_questions_.emplace(now + kPreBindInterval, attempt->id);
    return;
  }
  Bind(attempt, now);
}

void BindingCycle::FailPreBind(Attempt* attempt, const v1beta1::PluginStatus& rejection,
                               absl::Time now) {
  std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
  const std::string message = absl::StrJoin(rejection.reasons(), ", ");
  failures_.UnreserveAndForget(taken.get(), taken->pod_gone ? "the pod is gone" : message, now);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (taken->pod_gone) {
    state_.queue.Forget(taken->pod->uid());
    failures_.EndAttempt(*taken);
    if (taken->deletion_is_due) events_.OnPodDelete(taken->pod->uid(), now);
    return;
  }
  if (rejection.code() == v1beta1::CODE_ERROR)
    return failures_.FailError(std::move(taken), message, now);
  failures_.FailUnschedulable(std::move(taken), framework::DiagnosisOfRejectedNode(rejection), now);
}

Attempt* BindingCycle::FindInPreBind(const std::string& uid) const {
  Attempt* const attempt = state_.attempts.FindByPod(uid);
  if (attempt == nullptr || waits_.Waits(attempt->id)) return nullptr;
  const bool bind_has_begun = attempt->bind_began != absl::InfinitePast();
  return attempt->binding && !attempt->effects.empty() && !bind_has_begun ? attempt : nullptr;
}

Attempt* BindingCycle::FindWriting(const std::string& uid) const {
  Attempt* const attempt = FindInPreBind(uid);
  const bool writes =
      attempt != nullptr && attempt->effect_results.size() < attempt->effects.size();
  return writes ? attempt : nullptr;
}

void BindingCycle::CancelPreBind(Attempt* attempt, const std::string& plugin, absl::Time now) {
  attempt->preempted_by = plugin;
  // kube-scheduler cancels the request. Here it is on its way, so the cycle waits for its outcome.
  if (FindWriting(attempt->pod->uid()) == nullptr) FailPreempted(attempt, now);
}

void BindingCycle::FailPreempted(Attempt* attempt, absl::Time now) {
  FailPreBind(attempt,
              ErrorStatus(PluginAtWork(attempt->effects, attempt->effect_results.size()),
                          absl::StrCat("preempted by ", attempt->preempted_by)),
              now);
}

void BindingCycle::Bind(Attempt* attempt, absl::Time now) {
  if (absl::Status fits =
          StillFits(attempt->pod->uid(), attempt->node_name, attempt->plan->algorithm.name);
      !fits.ok()) {
    // Meanwhile another scheduler's pod came to the node, or the node was deleted.
    std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
    const std::string message(fits.message());
    failures_.UnreserveAndForget(taken.get(), message, now);
    state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
    return failures_.FailError(std::move(taken), message, now);
  }
  attempt->bind_began = now;
  OUTBOARD_FAIL_POINT(bind_decided);
  state_.actions->Bind(
      {this, attempt->id, attempt->pod, attempt->node_name, attempt->plan->algorithm.name}, now);
}

void BindingCycle::OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                               absl::Time now) {
  if (state_.attempts.Find(attempt_id) == nullptr) return;
  if (end == BindEnd::kUnknown) return;  // The process is about to exit; the pod stays assumed.
  std::unique_ptr<Attempt> attempt = state_.attempts.Take(attempt_id);
  const std::string uid = attempt->pod->uid();
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_BIND, attempt->plan->algorithm.name,
                          end == BindEnd::kBound ? v1beta1::CODE_SUCCESS : v1beta1::CODE_ERROR,
                          now - attempt->bind_began);
  if (end == BindEnd::kBound) return OnBound(*attempt, now);
  failures_.UnreserveAndForget(attempt.get(), message, now);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (end == BindEnd::kGone || attempt->pod_gone) {
    state_.queue.Forget(uid);
    failures_.EndAttempt(*attempt);
    return;
  }
  failures_.FailError(
      std::move(attempt),
      absl::StrCat("binding rejected: running Bind plugin \"DefaultBinder\": ", message), now);
}

void BindingCycle::OnBound(const Attempt& attempt, absl::Time now) {
  const queue::QueuedPod& info = *attempt.info;
  const std::string& profile = attempt.plan->algorithm.name;
  VLOG(2) << "Successfully bound pod " << attempt.pod->key() << " to node " << attempt.node_name;
  OUTBOARD_FAIL_POINT(before_scheduled_event);
  state_.actions->RecordScheduled(*attempt.pod, profile, attempt.node_name, now);
  OUTBOARD_FAIL_POINT(scheduled_event_queued);
  state_.observer->OnAttemptEnd(*attempt.pod, profile, AttemptResult::kScheduled, attempt.node_name,
                                "", now - attempt.began);
  state_.observer->OnBound(*attempt.pod, profile, info.attempts,
                           info.initial_attempt_time.has_value() ? now - *info.initial_attempt_time
                                                                 : absl::ZeroDuration(),
                           info.was_flushed);
  state_.queue.Forget(attempt.pod->uid());
  failures_.EndAttempt(attempt);
}

absl::Status BindingCycle::StillFits(const std::string& pod_uid, const std::string& node_name,
                                     const std::string& profile) const {
  const framework::ProfilePlan* const plan = state_.plans.Find(profile);
  if (plan == nullptr) return absl::OkStatus();
  const uint32_t slot = state_.cluster.SlotOf(node_name);
  // For a pod that is gone the API server decides.
  const bool is_gone = slot == cache::ClusterState::kNoSlot;
  absl::Status fits = is_gone ? absl::ResourceExhaustedError("the node is gone")
                              : state_.cluster.CheckFits(pod_uid, slot, plan->guard);
  if (!absl::IsResourceExhausted(fits)) return absl::OkStatus();
  state_.observer->OnGuardRefusal(is_gone ? "node_gone" : cache::ShortageOf(fits));
  return absl::ResourceExhaustedError(
      absl::StrCat("node ", node_name, " can no longer take the pod: ", fits.message()));
}

}  // namespace outboard::scheduler
