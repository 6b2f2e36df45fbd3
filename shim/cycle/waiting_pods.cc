#include "shim/cycle/waiting_pods.h"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outboard::cycle {
namespace {

// kube-scheduler's bound on what Permit may ask for.
constexpr absl::Duration kMaxTimeout = absl::Minutes(15);
// Early decisions kept for attempts that have not reached Permit; a host that sends more is broken.
constexpr size_t kMaxEarlyAttempts = 10000;
constexpr size_t kMaxEarlyDecisions = 64;  // of one attempt

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

WaitingPods::Limit WaitingPods::LimitOf(const v1alpha1::PermitWait& asked, absl::Time now) {
  const absl::Duration timeout =
      std::clamp(absl::Milliseconds(asked.timeout_millis()), absl::ZeroDuration(), kMaxTimeout);
  return {now + timeout, timeout};
}

std::optional<WaitEnd> WaitingPods::Add(uint64_t attempt_id, const std::string& pod_uid,
                                        const v1alpha1::PermitResponse& answer, absl::Time now) {
  Wait wait{pod_uid, now, {}};
  for (const v1alpha1::PermitWait& asked : answer.waits()) {
    wait.plugins[asked.plugin()] = LimitOf(asked, now);
  }
  waits_[attempt_id] = std::move(wait);
  auto early = early_.extract(attempt_id);
  if (!early.empty()) {
    for (const v1alpha1::WaitDecision& decision : early.mapped()) {
      if (auto end = Decide(decision, now)) return end;
    }
  }
  return std::nullopt;
}

std::optional<WaitEnd> WaitingPods::Decide(const v1alpha1::WaitDecision& decision, absl::Time now) {
  const auto it = waits_.find(decision.attempt_id());
  if (it == waits_.end()) {
    if (early_.size() < kMaxEarlyAttempts || early_.contains(decision.attempt_id())) {
      std::vector<v1alpha1::WaitDecision>& early = early_[decision.attempt_id()];
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
                                          const v1alpha1::PermitResponse& answer, absl::Time now) {
  const auto it = waits_.find(attempt_id);
  if (it == waits_.end()) return std::nullopt;
  std::map<std::string, Limit>& limits = it->second.plugins;
  std::map<std::string, Limit> renewed;
  for (const v1alpha1::PermitWait& asked : answer.waits()) {
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
  // The earliest limit; ties by attempt and plugin, so that every run is the same.
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

std::vector<PluginWait> WaitingPods::Describe(uint64_t attempt_id) const {
  std::vector<PluginWait> description;
  const auto it = waits_.find(attempt_id);
  if (it == waits_.end()) return description;
  for (const auto& [plugin, limit] : it->second.plugins)
    description.push_back({plugin, limit.deadline});
  return description;
}

}  // namespace outboard::cycle
