// Between Permit and the bind: what plugins want carried out first.
#include <glog/logging.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "shim/cycle/answer_check.h"
#include "shim/cycle/custom_resources.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {
namespace {

// How often PreBind is asked; kube-scheduler's interval for looking at volumes.
constexpr absl::Duration kPreBindInterval = absl::Seconds(1);

// Of all plugins; more are passed over, and come again.
constexpr size_t kMaxOwnEffects = 256;

std::string OwnKey(const v1alpha1::Effect& effect) {
  return absl::StrCat(effect.plugin(), "/", effect.key());
}

// The plugin whose effect is carried out, or was the last to be.
const std::string& PluginAtWork(const std::vector<v1alpha1::Effect>& effects, size_t done) {
  return effects[std::min(done, effects.size() - 1)].plugin();
}

v1alpha1::PluginStatus ErrorStatus(const std::string& plugin, absl::string_view message) {
  v1alpha1::PluginStatus status;
  status.set_plugin(plugin);
  status.set_code(v1alpha1::ERROR);
  status.add_reasons(absl::StrCat("running PreBind plugin \"", plugin, "\": ", message));
  return status;
}

}  // namespace

void Scheduler::BeginBinding(Attempt* attempt, absl::Time now) {
  // From here on nothing that happens can make the pod unschedulable.
  queue_.Done(attempt->pod->uid());
  if (attempt->effects.empty()) return Bind(attempt, now);
  WriteNextEffect(attempt, now);
}

void Scheduler::WriteNextEffect(Attempt* attempt, absl::Time now) {
  v1alpha1::Effect effect = attempt->effects[attempt->effect_results.size()];
  if (const std::string& after = effect.patch_object().after(); !after.empty()) {
    const auto made = absl::c_find_if(attempt->effect_results,
                                      [&](const auto& result) { return result.key() == after; });
    if (made != attempt->effect_results.end()) effect.mutable_patch_object()->set_uid(made->uid());
  }
  effects_->Write({attempt->id, attempt->pod, std::move(effect)}, now);
}

void Scheduler::OnEffectEnded(uint64_t attempt_id, const EffectEnd& end, absl::Time now) {
  TakeWritten(end, now);
  const auto it = attempts_.find(attempt_id);
  if (it == attempts_.end()) return;
  Attempt* const attempt = it->second.get();
  if (!attempt->preempted_by.empty()) return FailPreempted(attempt, now);
  const v1alpha1::Effect& effect = attempt->effects[attempt->effect_results.size()];
  if (!end.status.ok()) {
    return FailPreBind(attempt, ErrorStatus(effect.plugin(), end.status.message()), now);
  }
  v1alpha1::EffectResult& result = attempt->effect_results.emplace_back();
  result.set_key(effect.key());
  result.set_resource_version(end.resource_version);
  result.set_uid(end.uid);
  if (attempt->effect_results.size() < attempt->effects.size() && !attempt->pod_gone) {
    return WriteNextEffect(attempt, now);
  }
  if (!attempt->asks_pre_bind && !attempt->pod_gone) return Bind(attempt, now);
  attempt->pre_bind_began = now;
  // Nothing is done about volumes within the first second, as kube-scheduler knows, too.
  const bool volumes = absl::c_any_of(attempt->effects, [](const v1alpha1::Effect& named) {
    return named.has_bind_volume() || named.has_select_node();
  });
  pre_bind_questions_.emplace(volumes ? now + kPreBindInterval : now, attempt_id);
}

void Scheduler::TellAllListed(Host* host, absl::Time now) {
  if (own_effects_held_ || host->all_listed.has_value()) return;
  SendChanges(host, now);
  host->all_listed = cluster_.VersionOf(host->cursor);
}

void Scheduler::TakeOwnEffect(const std::string& host_name, Host* host,
                              const v1alpha1::Effect& effect, absl::Time now) {
  absl::Status bad = CheckObjectWrite(effect, host->client->info(), options_.custom_resources);
  if (absl::IsPermissionDenied(bad)) {
    VLOG(3) << bad.message();
    return;
  }
  if (!IsObjectWrite(effect) || !effect.patch_object().after().empty())
    bad = absl::InternalError("a host pushes an effect that only a pod's bind can have");
  if (!HasKey(effect)) bad = absl::InternalError("a host pushes an effect without a key");
  if (!bad.ok()) return OnBadAnswer(host_name, bad);
  TellAllListed(host, now);
  if (own_effects_held_ || host->pushes_from < *host->all_listed) {
    VLOG(3) << "An effect that " << effect.plugin() << " wants comes too early: " << effect.key();
    return;
  }
  if (own_effects_.size() >= kMaxOwnEffects || !own_effects_.insert(OwnKey(effect)).second) {
    VLOG(3) << "An effect that " << effect.plugin() << " wants is passed over: " << effect.key();
    return;
  }
  effects_->Write({0, nullptr, effect}, now);
}

void Scheduler::OnOwnEffectEnded(const v1alpha1::Effect& effect, const EffectEnd& end,
                                 absl::Time now) {
  TakeWritten(end, now);
  own_effects_.erase(OwnKey(effect));
  const std::string& name = WrittenObject(effect);
  if (end.status.ok()) {
    VLOG(2) << effect.plugin() << " had " << name << " written, version " << end.resource_version;
    return;
  }
  // Somebody was faster, or another process leads: the plugin sees what is there now.
  if (absl::IsAborted(end.status) || absl::IsAlreadyExists(end.status) ||
      absl::IsNotFound(end.status) || absl::IsFailedPrecondition(end.status)) {
    VLOG(1) << effect.plugin() << " could not have " << name << " written: " << end.status;
    return;
  }
  LOG_EVERY_N(WARNING, 20) << effect.plugin() << " could not have " << name
                           << " written: " << end.status.message();
}

void Scheduler::AskPreBind(Attempt* attempt, absl::Time now) {
  if (attempt->pod_gone) return FailPreBind(attempt, v1alpha1::PluginStatus(), now);
  // Hosts one after the other, each about what it named itself; the first that has to wait is asked
  // again. What has been carried out stays so, whoever is asked next.
  for (size_t i = 0; i < attempt->effects.size(); ++i) {
    const std::string& name = attempt->effect_hosts[i];
    if (i > 0 && attempt->effect_hosts[i - 1] == name) continue;
    absl::StatusOr<v1alpha1::PreBindResponse> answer = AskPreBind(*attempt, name, now);
    if (answer.ok() && answer->has_rejection()) {
      return FailPreBind(attempt, answer->rejection(), now);
    }
    if (answer.ok() && !answer->wait()) continue;
    if (!answer.ok()) {
      VLOG(2) << "PreBind of pod " << attempt->pod->key() << " was not answered by host \"" << name
              << "\": " << answer.status();
    }
    pre_bind_questions_.emplace(now + kPreBindInterval, attempt->id);
    return;
  }
  Bind(attempt, now);
}

absl::StatusOr<v1alpha1::PreBindResponse> Scheduler::AskPreBind(const Attempt& attempt,
                                                                const std::string& host_name,
                                                                absl::Time now) {
  Host* host = UsableHost(host_name);
  if (host == nullptr) return absl::UnavailableError("the host is away");
  SendChanges(host, now);
  v1alpha1::PreBindRequest request;
  FillHeader(attempt, *host, request.mutable_header());
  request.set_pod_uid(attempt.pod->uid());
  request.set_node_name(attempt.node_name);
  for (size_t i = 0; i < attempt.effects.size(); ++i) {
    if (attempt.effect_hosts[i] != host_name) continue;
    *request.add_effects() = attempt.effects[i];
    *request.add_results() = attempt.effect_results[i];
  }
  request.set_elapsed_millis(absl::ToInt64Milliseconds(now - attempt.pre_bind_began));
  const absl::Time began = absl::Now();
  absl::StatusOr<v1alpha1::PreBindResponse> answer =
      host->client->PreBind(std::move(request), absl::Now() + options_.pre_bind_deadline);
  if (answer.ok()) {
    if (absl::Status bad = CheckPreBind(*answer); !bad.ok()) {
      OnBadAnswer(host_name, bad);
      answer = bad;
    }
  }
  const v1alpha1::Code code = !answer.ok()     ? v1alpha1::ERROR
                              : answer->wait() ? v1alpha1::WAIT
                                               : answer->rejection().code();
  observer_->OnCall(v1alpha1::PRE_BIND, attempt.plan->algorithm.name, code, absl::Now() - began);
  return answer;
}

void Scheduler::FailPreBind(Attempt* attempt, const v1alpha1::PluginStatus& rejection,
                            absl::Time now) {
  std::unique_ptr<Attempt> taken = TakeAttempt(attempt->id);
  const std::string message = absl::StrJoin(rejection.reasons(), ", ");
  GiveBack(taken.get(), taken->pod_gone ? "the pod is gone" : message, now);
  queue_.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
  if (taken->pod_gone) {
    queue_.Forget(taken->pod->uid());
    EndAttempt(*taken);
    if (taken->deletion_is_due) OnPodDelete(taken->pod->uid(), now);
    return;
  }
  if (rejection.code() == v1alpha1::ERROR) return FailError(std::move(taken), message, now);
  FailUnschedulable(std::move(taken), DiagnosisOfRejectedNode(rejection), now);
}

Scheduler::Attempt* Scheduler::FindInPreBind(const std::string& uid) {
  const auto it = attempt_of_pod_.find(uid);
  if (it == attempt_of_pod_.end() || waiting_.Waits(it->second)) return nullptr;
  Attempt* const attempt = attempts_.at(it->second).get();
  const bool bind_has_begun = attempt->bind_began != absl::InfinitePast();
  return attempt->binding && !attempt->effects.empty() && !bind_has_begun ? attempt : nullptr;
}

Scheduler::Attempt* Scheduler::FindWriting(const std::string& uid) {
  Attempt* const attempt = FindInPreBind(uid);
  const bool writes =
      attempt != nullptr && attempt->effect_results.size() < attempt->effects.size();
  return writes ? attempt : nullptr;
}

void Scheduler::CancelPreBind(Attempt* attempt, const std::string& plugin, absl::Time now) {
  attempt->preempted_by = plugin;
  // kube-scheduler gives a request up; here it is on its way, and what became of it is waited for.
  if (FindWriting(attempt->pod->uid()) == nullptr) FailPreempted(attempt, now);
}

void Scheduler::FailPreempted(Attempt* attempt, absl::Time now) {
  FailPreBind(attempt,
              ErrorStatus(PluginAtWork(attempt->effects, attempt->effect_results.size()),
                          absl::StrCat("preempted by ", attempt->preempted_by)),
              now);
}

}  // namespace outboard::cycle
