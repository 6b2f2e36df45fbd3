#include "shim/scheduler/parked_pods.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "shim/queue/queued_pod.h"
#include "shim/scheduler/cluster_actions.h"

namespace outboard::scheduler {
namespace {

// Each report looks at all pods that are not reported yet.
constexpr absl::Duration kReportEvery = absl::Milliseconds(100);

}  // namespace

std::string NoAnswerFrom(const std::string& host, const absl::Status& status) {
  return absl::StrCat("plugin host \"", host, "\" did not answer: ", status.message());
}

void ParkedPods::Add(const kube::PodObject& pod, const std::string& host,
                     const std::string& message, absl::Time now) {
  absl::Time since = now;
  const HostRecord& record = state_.hosts[host];
  // Nothing more to wait for if the host was lost long ago.
  if (!record.is_here() && record.unavailable_since != absl::InfinitePast())
    since = std::min(now, record.unavailable_since);
  if (!unreported_.try_emplace(pod.uid(), Unreported{since, message}).second) return;
  LOG(WARNING) << "Pod " << pod.key() << " is parked: " << message;
  next_report_ = std::min(next_report_, since + state_.options.host_grace);
}

void ParkedPods::Report(absl::Time now) {
  if (now < next_report_) return;
  next_report_ = absl::InfiniteFuture();
  std::vector<std::pair<const queue::QueuedPod*, std::string>> due;
  for (auto it = unreported_.begin(); it != unreported_.end();) {
    const absl::Time at = it->second.since + state_.options.host_grace;
    if (at > now) {
      next_report_ = std::min(next_report_, at);
      ++it;
      continue;
    }
    const queue::QueuedPod* const pod = state_.queue.Find(it->first);
    if (pod != nullptr && pod->place == queue::Place::kParked)
      due.emplace_back(pod, std::move(it->second.message));
    unreported_.erase(it++);
  }
  next_report_ = std::max(next_report_, now + kReportEvery);
  absl::c_sort(due,
               [](const auto& a, const auto& b) { return a.first->sequence < b.first->sequence; });
  for (const auto& [info, message] : due) {
    const kube::PodObject& pod = *info->pod;
    state_.actions->RecordFailed(pod, pod.pod.scheduler_name(), message, now);
    state_.actions->PatchStatus(pod, PodScheduledFalse{kReasonSchedulerError, message},
                                std::nullopt, now);
  }
}

}  // namespace outboard::scheduler
