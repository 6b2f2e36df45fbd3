#include "shim/reload/unknown_profiles.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"

namespace outboard::reload {
namespace {

// Whether a scheduler has handled the pod. The API server itself writes the condition of a pod with
// gates.
bool IsHandled(const kube::PodObject& pod) {
  return !pod.scheduled.status.empty() && pod.scheduled.reason != "SchedulingGated";
}

}  // namespace

void UnknownProfiles::Configure(const std::vector<std::string>& profiles,
                                const std::vector<std::string>& prefixes) {
  earlier_.insert(profiles_.begin(), profiles_.end());
  profiles_ = {profiles.begin(), profiles.end()};
  prefixes_ = prefixes;
}

bool UnknownProfiles::IsUnknown(const kube::PodObject& pod) const {
  const std::string& scheduler = pod.pod.scheduler_name();
  if (!pod.pod.node_name().empty() || profiles_.contains(scheduler)) return false;
  // Its condition may be this process's own.
  if (earlier_.contains(scheduler)) return true;
  return !IsHandled(pod) && absl::c_any_of(prefixes_, [&](const std::string& prefix) {
    return absl::StartsWith(scheduler, prefix);
  });
}

void UnknownProfiles::OnPod(const kube::PodPtr& pod, absl::Time now) {
  if (!IsUnknown(*pod)) {
    waiting_.erase(pod->uid());
    return;
  }
  const auto [it, is_new] = waiting_.try_emplace(pod->uid());
  Pod& waits = it->second;
  if (is_new) {
    waits.since = now;
  } else if (IsHandled(*pod) && pod->scheduled.message != waits.pod->scheduled.message) {
    waits.is_handled = true;
  }
  waits.pod = pod;
}

bool UnknownProfiles::Counts(const Pod& waits, absl::Time now) {
  return !waits.is_handled && now - waits.since >= kPatience;
}

std::map<std::string, size_t> UnknownProfiles::Count(absl::Time now) {
  std::map<std::string, size_t> counts;
  for (const std::string& name : counted_) counts[name] = 0;
  for (const auto& [uid, waits] : waiting_) {
    if (!Counts(waits, now)) continue;
    const std::string& name = waits.pod->pod.scheduler_name();
    const bool has_label = counted_.contains(name) || counted_.size() < kMaxNames;
    const std::string& label = has_label ? name : "other";
    counted_.insert(label);
    ++counts[label];
  }
  return counts;
}

void UnknownProfiles::TakeUnreported(size_t limit, absl::Time now,
                                     const std::function<void(const kube::PodObject&)>& visit) {
  for (auto& [uid, waits] : waiting_) {
    if (waits.reported || !Counts(waits, now)) continue;
    if (limit-- == 0) return;
    waits.reported = true;
    visit(*waits.pod);
  }
}

}  // namespace outboard::reload
