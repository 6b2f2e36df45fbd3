#include "shim/scheduler/permit_waits.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/scheduler/attempt_failures.h"
#include "shim/scheduler/binding_cycle.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {
namespace {

using queue::QueuedPod;

// kube-scheduler's limit for a wait at Permit.
constexpr absl::Duration kMaxTimeout = absl::Minutes(15);
// Limits of early decisions, on attempts that have not reached Permit; only a broken host sends
// more.
constexpr size_t kMaxEarlyAttempts = 10000;
constexpr size_t kMaxEarlyDecisions = 64;  // of one attempt

// Within this time the instance that takes a host's place has to confirm each wait.
constexpr absl::Duration kConfirmDeadline = absl::Seconds(1);
// Questions in one Tick, because cycles are delayed meanwhile.
constexpr int kConfirmationsAtOnce = 4;
// The pause after a question without a usable answer.
constexpr absl::Duration kConfirmRetry = absl::Milliseconds(20);

std::string TrimZeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

}  // namespace

std::string GoDuration(absl::Duration duration) {
  if (duration == absl::ZeroDuration()) return "0s";
  if (duration < absl::ZeroDuration()) return absl::StrCat("-", GoDuration(-duration));
  const int64_t nanos = absl::ToInt64Nanoseconds(duration);
  if (nanos < 1000) return absl::StrCat(nanos, "ns");
  char buffer[64];
  if (nanos < 1000000) {
    snprintf(buffer, sizeof(buffer), "%.3f", static_cast<double>(nanos) / 1e3);
    return absl::StrCat(TrimZeros(buffer), "µs");
  }
  if (nanos < 1000000000) {
    snprintf(buffer, sizeof(buffer), "%.6f", static_cast<double>(nanos) / 1e6);
    return absl::StrCat(TrimZeros(buffer), "ms");
  }
  const int64_t hours = nanos / 3600000000000;
  const int64_t minutes = nanos / 60000000000 % 60;
  const int64_t rest = nanos % 60000000000;
  std::string text;
  if (hours > 0) absl::StrAppend(&text, hours, "h");
  if (hours > 0 || minutes > 0) absl::StrAppend(&text, minutes, "m");
  snprintf(buffer, sizeof(buffer), "%lld.%09lld", static_cast<long long>(rest / 1000000000),
           static_cast<long long>(rest % 1000000000));
  absl::StrAppend(&text, TrimZeros(buffer), "s");
  return text;
}

WaitEnd WaitingPods::End(uint64_t attempt_id, bool allowed, std::string plugin, std::string message,
                         absl::Time now) {
  WaitEnd end;
  end.attempt_id = attempt_id;
  end.allowed = allowed;
  end.plugin = std::move(plugin);
  end.message = std::move(message);
  if (auto it = waits_.find(attempt_id); it != waits_.end()) {
    end.waited = now - it->second.began;
    waits_.erase(it);
  }
  return end;
}

WaitingPods::Limit WaitingPods::LimitOf(const v1beta1::PermitWait& asked, absl::Time now) {
  const absl::Duration timeout =
      std::clamp(absl::Microseconds(asked.timeout_micros()), absl::ZeroDuration(), kMaxTimeout);
  return {now + timeout, timeout};
}

std::optional<WaitEnd> WaitingPods::Add(uint64_t attempt_id, const std::string& pod_uid,
                                        const v1beta1::PermitResponse& answer, absl::Time now) {
  Wait wait{pod_uid, now, {}};
  for (const v1beta1::PermitWait& asked : answer.waits()) {
    wait.plugins[asked.plugin()] = LimitOf(asked, now);
  }
  waits_[attempt_id] = std::move(wait);
  auto early = early_.extract(attempt_id);
  if (!early.empty()) {
    for (const v1beta1::WaitDecision& decision : early.mapped()) {
      if (auto end = Decide(decision, now)) return end;
    }
  }
  return std::nullopt;
}

std::optional<WaitEnd> WaitingPods::Decide(const v1beta1::WaitDecision& decision, absl::Time now) {
  const auto it = waits_.find(decision.attempt_id());
  if (it == waits_.end()) {
    if (early_.size() < kMaxEarlyAttempts || early_.contains(decision.attempt_id())) {
      std::vector<v1beta1::WaitDecision>& early = early_[decision.attempt_id()];
      if (early.size() < kMaxEarlyDecisions) early.push_back(decision);
    }
    return std::nullopt;
  }
  if (it->second.pod_uid != decision.pod_uid()) return std::nullopt;
  if (!decision.allow()) {
    return End(decision.attempt_id(), false, decision.plugin(), decision.message(), now);
  }
  it->second.plugins.erase(decision.plugin());
  if (!it->second.plugins.empty()) return std::nullopt;
  return End(decision.attempt_id(), true, "", "", now);
}

std::optional<WaitEnd> WaitingPods::Renew(uint64_t attempt_id,
                                          const std::vector<std::string>& plugins,
                                          const v1beta1::PermitResponse& answer, absl::Time now) {
  const auto it = waits_.find(attempt_id);
  if (it == waits_.end()) return std::nullopt;
  std::map<std::string, Limit>& limits = it->second.plugins;
  std::map<std::string, Limit> renewed;
  for (const v1beta1::PermitWait& asked : answer.waits()) {
    const auto known = limits.find(asked.plugin());
    renewed[asked.plugin()] = known == limits.end() ? LimitOf(asked, now) : known->second;
  }
  for (const std::string& plugin : plugins) limits.erase(plugin);
  limits.merge(renewed);
  if (!limits.empty()) return std::nullopt;
  return End(attempt_id, true, "", "", now);
}

std::optional<WaitEnd> WaitingPods::Reject(uint64_t attempt_id, const std::string& plugin,
                                           const std::string& message, absl::Time now) {
  if (!waits_.contains(attempt_id)) return std::nullopt;
  return End(attempt_id, false, plugin, message, now);
}

std::optional<WaitEnd> WaitingPods::Preempt(uint64_t attempt_id, const std::string& plugin,
                                            absl::Time now) {
  std::optional<WaitEnd> end = Reject(attempt_id, plugin, "preempted", now);
  if (end.has_value()) end->preempted = true;
  return end;
}

std::optional<WaitEnd> WaitingPods::TakeExpired(absl::Time now) {
  // The earliest limit; ties by attempt and plugin, so that the result does not depend on the map.
  uint64_t first_attempt = 0;
  const std::string* first_plugin = nullptr;
  const Limit* first = nullptr;
  for (const auto& [attempt_id, wait] : waits_) {
    for (const auto& [plugin, limit] : wait.plugins) {
      if (limit.deadline > now) continue;
      if (first == nullptr || std::tie(limit.deadline, attempt_id, plugin) <
                                  std::tie(first->deadline, first_attempt, *first_plugin)) {
        first = &limit;
        first_attempt = attempt_id;
        first_plugin = &plugin;
      }
    }
  }
  if (first == nullptr) return std::nullopt;
  const std::string plugin = *first_plugin;
  return End(first_attempt, false, plugin,
             absl::StrCat("rejected due to timeout after waiting ", GoDuration(first->timeout),
                          " at plugin ", plugin),
             now);
}

absl::Time WaitingPods::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [attempt_id, wait] : waits_) {
    for (const auto& [plugin, limit] : wait.plugins) next = std::min(next, limit.deadline);
  }
  return next;
}

void WaitingPods::EndAttempt(uint64_t attempt_id) { early_.erase(attempt_id); }

std::vector<cache::PluginWait> WaitingPods::Describe(uint64_t attempt_id) const {
  std::vector<cache::PluginWait> description;
  const auto it = waits_.find(attempt_id);
  if (it == waits_.end()) return description;
  for (const auto& [plugin, limit] : it->second.plugins)
    description.push_back({plugin, limit.deadline});
  return description;
}

// --- PermitWaits

void PermitWaits::Begin(Attempt* attempt, const v1beta1::PermitResponse& answer, absl::Time now) {
  if (auto end = waiting_.Add(attempt->id, attempt->pod->uid(), answer, now)) {
    EndWait(*end, now);
  } else {
    state_.cluster.SetWaiting(attempt->pod->uid(), attempt->id, waiting_.Describe(attempt->id), now)
        .IgnoreError();
    OUTBOARD_FAIL_POINT(permit_wait_began);
  }
}

void PermitWaits::ApplyDecisions(const HostDecisions& its, absl::Time now) {
  for (const v1beta1::WaitDecision& decision : its.decisions) {
    if (framework::CheckDecision(decision).ok()) ApplyDecision(its.host_name, decision, now);
  }
}

PushEnd PermitWaits::TakeDecision(const std::string& host_name,
                                  const v1beta1::WaitDecision& decision, absl::Time now) {
  if (absl::Status bad = framework::CheckDecision(decision); !bad.ok())
    return PushEnd::Refused(bad);
  if (!state_.Serves(host_name, decision.plugin())) return PushEnd::NotServed(decision.plugin());
  return PushEnd::AboutPods(ApplyDecision(host_name, decision, now),
                            state_.IsKnown(decision.pod_uid()));
}

bool PermitWaits::ApplyDecision(const std::string& host_name, const v1beta1::WaitDecision& decision,
                                absl::Time now) {
  // Ignored: decisions on attempts that are over or unknown, of plugins that are neither at Permit
  // nor at Reserve, and of other hosts' plugins.
  const Attempt* const attempt = state_.attempts.Find(decision.attempt_id());
  if (attempt == nullptr || attempt->pod->uid() != decision.pod_uid()) return false;
  const auto has_plugin = [&](const framework::HostExtensionPoint& point) {
    if (point.host_name != host_name) return false;
    return absl::c_any_of(point.plugins, [&](const framework::InterestedPlugin& plugin) {
      return plugin.name == decision.plugin();
    });
  };
  if (!absl::c_any_of(attempt->plan->permit, has_plugin) &&
      !absl::c_any_of(attempt->plan->reserve, has_plugin)) {
    return false;
  }
  // Every attempt here is past Permit: if it does not wait, its wait has ended.
  const bool waits = waiting_.Waits(attempt->id);
  if (auto end = waiting_.Decide(decision, now)) EndWait(*end, now);
  return waits;
}

bool PermitWaits::Reject(uint64_t attempt_id, const std::string& message, absl::Time now) {
  const std::optional<WaitEnd> end = waiting_.Reject(attempt_id, "", message, now);
  if (end.has_value()) EndWait(*end, now);
  return end.has_value();
}

bool PermitWaits::Preempt(uint64_t attempt_id, const std::string& plugin, absl::Time now) {
  const std::optional<WaitEnd> end = waiting_.Preempt(attempt_id, plugin, now);
  if (end.has_value()) EndWait(*end, now);
  return end.has_value();
}

void PermitWaits::OnNodeDelete(const std::string& node_name, absl::Time now) {
  if (waiting_.size() == 0) return;
  // These pods would be refused when their waits end well. By then pods that wait for them would
  // have waited for nothing, or would be bound without them.
  std::vector<uint64_t> lost;
  for (const auto& [id, attempt] : state_.attempts.by_id()) {
    if (attempt->node_name == node_name && waiting_.Waits(id)) lost.push_back(id);
  }
  absl::c_sort(lost);
  for (const uint64_t id : lost) {
    // The end of one wait may have ended another.
    std::optional<WaitEnd> end = waiting_.Preempt(id, "", now);
    if (!end.has_value()) continue;
    end->message = absl::StrCat("node ", node_name, " is gone");
    EndWait(*end, now);
  }
}

void PermitWaits::EndWait(const WaitEnd& end, absl::Time now) {
  Attempt* const attempt = state_.attempts.Find(end.attempt_id);
  if (attempt == nullptr) return;
  state_.observer->OnPermitWaitEnd(*attempt->pod, end.waited,
                                   end.allowed     ? v1beta1::CODE_SUCCESS
                                   : end.preempted ? v1beta1::CODE_ERROR
                                                   : v1beta1::CODE_UNSCHEDULABLE);
  if (end.allowed) {
    state_.cluster.EndWaiting(attempt->pod->uid()).IgnoreError();
    OUTBOARD_FAIL_POINT(permit_wait_ended);
    return binding_.Begin(attempt, now);
  }
  VLOG(4) << "Pod " << attempt->pod->key() << " rejected while waiting on permit: " << end.message;
  std::unique_ptr<Attempt> taken = state_.attempts.Take(end.attempt_id);
  failures_.UnreserveAndForget(taken.get(), end.message, now);
  if (end.preempted) {
    state_.queue.MoveAllToActiveOrBackoff(queue::AssignedPodDelete(), now);
    return failures_.FailError(std::move(taken),
                               absl::StrCat("waiting on permit for pod: ", end.message), now);
  }
  v1beta1::PluginStatus status;
  status.set_plugin(end.plugin);
  status.set_code(v1beta1::CODE_UNSCHEDULABLE);
  status.add_reasons(end.message);
  const std::string uid = taken->pod->uid();
  failures_.FailUnschedulable(std::move(taken), framework::DiagnosisOfRejectedNode(status), now);
  // The room that it gave back may help others, but not itself.
  state_.queue.MoveAllToActiveOrBackoff(
      queue::AssignedPodDelete(), [&uid](const QueuedPod& other) { return other.uid() != uid; },
      now);
}

void PermitWaits::ForgetConfirmations(const std::string& host_name) {
  std::erase_if(confirmations_,
                [&](const Confirmation& open) { return open.host_name == host_name; });
}

void PermitWaits::ReconfirmPermitWaits(const std::string& host_name, absl::Time now) {
  for (const auto& [id, attempt] : state_.attempts.by_id()) {
    if (!waiting_.Waits(id)) continue;
    for (const framework::HostExtensionPoint& point : attempt->plan->permit) {
      if (point.host_name == host_name && state_.IsInterested(point.plugins, attempt->pod->pod))
        confirmations_.push_back({id, host_name, &point, now, now + kConfirmDeadline});
    }
  }
  // The longest wait first.
  std::sort(
      confirmations_.begin(), confirmations_.end(),
      [](const Confirmation& a, const Confirmation& b) { return a.attempt_id < b.attempt_id; });
}

void PermitWaits::Tick(absl::Time now) {
  while (auto end = waiting_.TakeExpired(now)) EndWait(*end, now);
  AskForConfirmations(now);
}

absl::Time PermitWaits::NextWakeup() const {
  absl::Time next = waiting_.NextDeadline();
  if (!confirmations_.empty()) next = std::min(next, confirmations_.front().due);
  return next;
}

void PermitWaits::AskForConfirmations(absl::Time now) {
  for (int asked = 0; asked < kConfirmationsAtOnce && !confirmations_.empty(); ++asked) {
    if (confirmations_.front().due > now) return;
    Confirmation open = confirmations_.front();
    confirmations_.pop_front();
    Attempt* const attempt = state_.attempts.Find(open.attempt_id);
    // The wait may have ended for another reason.
    if (attempt == nullptr || !waiting_.Waits(open.attempt_id)) continue;
    absl::StatusOr<v1beta1::PermitResponse> answer =
        host_calls_.Permit(attempt, *open.point, /*resumed=*/true, now);
    if (answer.ok()) {
      Confirm(attempt, *open.point, *answer, now);
      continue;
    }
    if (now < open.give_up) {
      open.due = std::min(now + kConfirmRetry, open.give_up);
      confirmations_.push_back(open);
      return;
    }
    if (host_calls_.IsFailureIgnored(*open.point, v1beta1::EXTENSION_POINT_PERMIT)) {
      Confirm(attempt, *open.point, v1beta1::PermitResponse(), now);
      continue;
    }
    LOG(WARNING) << "Wait of pod " << attempt->pod->key() << " on permit failed: the new instance "
                 << "of host \"" << open.host_name << "\" did not confirm it within "
                 << kConfirmDeadline << ": " << answer.status().message();
    waiting_.Drop(open.attempt_id);
    std::unique_ptr<Attempt> taken = state_.attempts.Take(open.attempt_id);
    failures_.UnreserveAndForget(taken.get(), "the wait was not confirmed", now);
    failures_.FailHostUnavailable(std::move(taken), open.host_name, answer.status(), now);
  }
}

void PermitWaits::Confirm(Attempt* attempt, const framework::HostExtensionPoint& point,
                          const v1beta1::PermitResponse& answer, absl::Time now) {
  VLOG(2) << "Pod " << attempt->pod->key() << " waits on permit; the new instance of host \""
          << point.host_name << "\" "
          << (answer.has_rejection()   ? "rejects it"
              : answer.waits().empty() ? "allows it"
                                       : "still waits");
  if (answer.has_rejection() && answer.rejection().code() == v1beta1::CODE_ERROR) {
    waiting_.Drop(attempt->id);
    std::unique_ptr<Attempt> taken = state_.attempts.Take(attempt->id);
    failures_.UnreserveAndForget(taken.get(), "permit was rejected", now);
    failures_.FailError(std::move(taken), absl::StrJoin(answer.rejection().reasons(), ", "), now);
  } else if (answer.has_rejection()) {
    const auto& rejection = answer.rejection();
    if (auto end = waiting_.Reject(attempt->id, rejection.plugin(),
                                   absl::StrJoin(rejection.reasons(), ", "), now)) {
      EndWait(*end, now);
    }
  } else {
    std::vector<std::string> plugins;
    for (const framework::InterestedPlugin& plugin : point.plugins) plugins.push_back(plugin.name);
    if (auto end = waiting_.Renew(attempt->id, plugins, answer, now)) {
      EndWait(*end, now);
    } else {
      state_.cluster
          .SetWaiting(attempt->pod->uid(), attempt->id, waiting_.Describe(attempt->id), now)
          .IgnoreError();
    }
  }
  ApplyDecisions({point.host_name, answer.decisions()}, now);
}

}  // namespace outboard::scheduler
