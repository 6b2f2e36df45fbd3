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
#include "shim/framework/answer_check.h"
#include "shim/scheduler/binding_messages.h"
#include "shim/scheduler/cluster_event_handler.h"

namespace outboard::scheduler {
namespace {

// kube-scheduler's interval for checking volumes.
constexpr absl::Duration kPreBindInterval = absl::Seconds(1);

// The contract's limit: answers of PreBind in an attempt that name further effects.
constexpr int kMaxPreBindRounds = 8;

// The plugin of the current effect, or of the last one; without effects, the first at PreBind.
const std::string& PluginAtWork(const Attempt& attempt) {
  const std::vector<v1beta1::Effect>& effects = attempt.effects;
  if (effects.empty()) return attempt.plan->pre_bind.front().plugins.front().name;
  return effects[std::min(attempt.effect_results.size(), effects.size() - 1)].plugin();
}

v1beta1::PluginStatus ErrorStatus(const std::string& plugin, absl::string_view message) {
  v1beta1::PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(v1beta1::CODE_ERROR);
  status.add_reasons(absl::StrCat("running PreBind plugin \"", plugin, "\": ", message));
  return status;
}

v1beta1::PluginStatus InvalidAnswer(const std::string& host_name, const absl::Status& wrong) {
  v1beta1::PluginStatus status;
  status.set_code(v1beta1::CODE_ERROR);
  status.add_reasons(absl::StrCat("host \"", host_name,
                                  "\" gave an invalid answer to PreBind: ", wrong.message()));
  return status;
}

}  // namespace

void BindingCycle::Begin(Attempt* attempt, absl::Time now) {
  // No event from here on is relevant to a rejection of the pod.
  state_.queue.Done(attempt->pod->uid());
  if (!attempt->effects.empty()) return WriteNextEffect(attempt, now);
  if (!WillRunPreBind(*attempt)) return Bind(attempt, now);
  attempt->pre_bind_began = now;
  pre_bind_questions_.emplace(now, attempt->id);
}

bool BindingCycle::WillRunPreBind(const Attempt& attempt) const {
  return !attempt.effects.empty() || state_.IsInterested(attempt.plan->pre_bind, attempt.pod->pod);
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
  if (!attempt->cancelled_because.empty()) return FailCancelled(attempt, now);
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
  if (PreBindHosts(*attempt).empty() && !attempt->pod_gone) return Bind(attempt, now);
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

std::vector<std::string> BindingCycle::PreBindHosts(const Attempt& attempt) const {
  std::vector<std::string> hosts;
  const auto add = [&](const std::string& name) {
    if (!absl::c_linear_search(hosts, name)) hosts.push_back(name);
  };
  if (attempt.asks_pre_bind) absl::c_for_each(attempt.effect_hosts, add);
  for (const framework::HostExtensionPoint& point : attempt.plan->pre_bind) {
    if (state_.IsInterested(point.plugins, attempt.pod->pod)) add(point.host_name);
  }
  return hosts;
}

void BindingCycle::AskPreBind(Attempt* attempt, absl::Time now) {
  if (attempt->pod_gone) return FailPreBind(attempt, v1beta1::PluginStatus(), now);
  // Asks each host about its own effects, one host after the other. If a host has to wait or names
  // further effects, asks all again later. Executed effects are not repeated.
  for (const std::string& name : PreBindHosts(*attempt)) {
    bool is_invalid = false;
    absl::StatusOr<v1beta1::PreBindResponse> answer =
        host_calls_.PreBind(*attempt, name, now, &is_invalid);
    if (answer.ok() && answer->has_rejection()) {
      return FailPreBind(attempt, answer->rejection(), now);
    }
    if (answer.ok() && !answer->effects().empty()) return AddEffects(attempt, name, *answer, now);
    if (answer.ok() && !answer->wait()) continue;
    if (!answer.ok() && IsFailureIgnored(*attempt, name)) continue;
    // The host would give the answer again, and the pod would keep its node for ever.
    if (is_invalid) return FailPreBind(attempt, InvalidAnswer(name, answer.status()), now);
    if (!answer.ok()) {
      VLOG(2) << "PreBind of pod " << attempt->pod->key() << " failed: host \"" << name
              << "\" did not answer: " << answer.status();
    }
    pre_bind_questions_.emplace(now + kPreBindInterval, attempt->id);
    return;
  }
  Bind(attempt, now);
}

void BindingCycle::AddEffects(Attempt* attempt, const std::string& host_name,
                              const v1beta1::PreBindResponse& answer, absl::Time now) {
  if (++attempt->pre_bind_rounds > kMaxPreBindRounds) {
    const std::string message =
        absl::StrCat("names further effects in more than ", kMaxPreBindRounds, " answers");
    host_calls_.OnBadPlacement(host_name, framework::WrongAnswer("PreBind " + message));
    return FailPreBind(attempt, ErrorStatus(answer.effects(0).plugin(), message), now);
  }
  attempt->effects.insert(attempt->effects.end(), answer.effects().begin(), answer.effects().end());
  attempt->effect_hosts.resize(attempt->effects.size(), host_name);
  attempt->asks_pre_bind = true;
  // Fails only for a pod that is gone, which the end of the effect notices.
  state_.cluster.SetEffects(attempt->pod->uid(), attempt->effects).IgnoreError();
  WriteNextEffect(attempt, now);
}

bool BindingCycle::IsFailureIgnored(const Attempt& attempt, const std::string& host_name) const {
  // What Reserve named was written; a plugin must see that it is complete.
  if (absl::c_linear_search(attempt.effect_hosts, host_name)) return false;
  const auto point = absl::c_find_if(attempt.plan->pre_bind,
                                     [&](const auto& its) { return its.host_name == host_name; });
  return point != attempt.plan->pre_bind.end() &&
         host_calls_.IsFailureIgnored(*point, v1beta1::EXTENSION_POINT_PRE_BIND);
}

void BindingCycle::FailPreBind(Attempt* attempt, const v1beta1::PluginStatus& rejection,
                               absl::Time now) {
  std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
  const std::string message = absl::StrJoin(rejection.reasons(), ", ");
  failures_.UnreserveAndForget(taken.get(), taken->pod_gone ? "the pod is gone" : message, now);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (taken->pod_gone) {
    failures_.EndGone(*taken);
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
  return attempt->binding && WillRunPreBind(*attempt) && !bind_has_begun ? attempt : nullptr;
}

Attempt* BindingCycle::FindWriting(const std::string& uid) const {
  Attempt* const attempt = FindInPreBind(uid);
  const bool writes =
      attempt != nullptr && attempt->effect_results.size() < attempt->effects.size();
  return writes ? attempt : nullptr;
}

void BindingCycle::CancelPreBind(Attempt* attempt, const std::string& why, absl::Time now) {
  attempt->cancelled_because = why;
  // kube-scheduler cancels the request. Here it is on its way, so the cycle waits for its outcome.
  if (FindWriting(attempt->pod->uid()) == nullptr) FailCancelled(attempt, now);
}

void BindingCycle::FailCancelled(Attempt* attempt, absl::Time now) {
  FailPreBind(attempt, ErrorStatus(PluginAtWork(*attempt), attempt->cancelled_because), now);
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
  BindDecision decision = bind_calls_.Decide(*attempt, now);
  if (decision.kind == BindDecision::Kind::kFailed) return FailBind(attempt, decision.message, now);
  if (decision.kind == BindDecision::Kind::kHostUnavailable) {
    std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
    failures_.UnreserveAndForget(taken.get(), "bind was not answered", now);
    state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
    return failures_.FailHostUnavailable(std::move(taken), decision.host_name, decision.status,
                                         now);
  }
  attempt->binder = std::move(decision.plugin);
  attempt->binder_host = std::move(decision.host_name);
  attempt->bound_by_plugin = decision.kind == BindDecision::Kind::kReadOutcome;
  attempt->bind_unanswered = std::move(decision.message);
  BindOrder order;
  order.ordered_by = this;
  order.attempt_id = attempt->id;
  order.pod = attempt->pod;
  order.node_name = attempt->node_name;
  order.profile = attempt->plan->algorithm.name;
  order.bound_by_plugin = attempt->bound_by_plugin;
  order.annotations = std::move(decision.annotations);
  state_.actions->Bind(order, now);
}

void BindingCycle::FailBind(Attempt* attempt, const std::string& message, absl::Time now) {
  std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_BIND, taken->plan->algorithm.name,
                          v1beta1::CODE_ERROR, now - taken->bind_began);
  failures_.UnreserveAndForget(taken.get(), message, now);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  failures_.FailError(std::move(taken), message, now);
}

std::string BindingCycle::WhyNotBound(const Attempt& attempt, const std::string& message) const {
  if (!attempt.bound_by_plugin)
    return BindFailure(attempt.binder.empty() ? kDefaultBinder : attempt.binder, message);
  std::string why = attempt.bind_unanswered;
  if (why.empty()) {
    why = absl::StrCat("the plugin answered that it bound the pod, but the pod is not on node ",
                       attempt.node_name);
  }
  if (!message.empty()) absl::StrAppend(&why, ": ", message);
  return BindFailure(attempt.binder, why);
}

void BindingCycle::OnBindEnded(uint64_t attempt_id, BindEnd end, const std::string& message,
                               absl::Time now) {
  const Attempt* const known = state_.attempts.Find(attempt_id);
  if (known == nullptr) return;
  if (end == BindEnd::kUnknown) {  // The process is about to exit; the pod stays assumed.
    if (known->is_external()) {
      known->on_external_end(
          absl::UnknownError("the bind was not settled before this process lost the lease"));
    }
    return;
  }
  std::unique_ptr<Attempt> attempt = state_.attempts.Take(attempt_id);
  state_.observer->OnCall(v1beta1::EXTENSION_POINT_BIND, attempt->plan->algorithm.name,
                          end == BindEnd::kBound ? v1beta1::CODE_SUCCESS : v1beta1::CODE_ERROR,
                          now - attempt->bind_began);
  if (end == BindEnd::kBound) return OnBound(*attempt, now);
  const std::string why = WhyNotBound(*attempt, message);
  if (end == BindEnd::kNotBound && attempt->bound_by_plugin && attempt->bind_unanswered.empty())
    host_calls_.OnBadPlacement(attempt->binder_host, framework::WrongAnswer(why));
  failures_.UnreserveAndForget(attempt.get(), message, now);
  state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (end == BindEnd::kGone || attempt->pod_gone) return failures_.EndGone(*attempt);
  failures_.FailError(std::move(attempt), why, now);
}

void BindingCycle::OnBound(const Attempt& attempt, absl::Time now) {
  if (attempt.is_external()) {
    bind_calls_.SendPostBind(attempt, now);
    return failures_.EndExternal(attempt, absl::OkStatus());
  }
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
  bind_calls_.SendPostBind(attempt, now);
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
