#include "shim/scheduler/queue_calls.h"

#include <map>
#include <utility>

#include "absl/strings/str_join.h"
#include "shim/framework/answer_check.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/parked_pods.h"
#include "shim/scheduler/preemption_tracker.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {
namespace {

// The pause before pods without a sort key are asked about again.
constexpr absl::Duration kSortKeysRetry = absl::Seconds(1);
// See queue_sort.proto.
constexpr size_t kMaxSortKeys = 4096;
constexpr size_t kMaxSortKeyBytes = 64;

}  // namespace

bool QueueCalls::IgnoresEvents(const queue::QueuedPod& pod) const {
  return preemption_.GateOf(pod.uid()) != nullptr ||
         (state_.skipper != nullptr && state_.skipper->IgnoresEvents(pod.uid()));
}

std::vector<queue::PreEnqueueResult> QueueCalls::PreEnqueue(
    absl::Span<const queue::QueuedPod* const> pods, absl::Time now) {
  std::vector<queue::PreEnqueueResult> results(pods.size());
  // One call for each profile and host.
  std::map<std::pair<const framework::ProfilePlan*, const framework::HostExtensionPoint*>,
           std::vector<size_t>>
      calls;
  for (size_t i = 0; i < pods.size(); ++i) {
    if (const std::string* gate = preemption_.GateOf(pods[i]->uid())) {
      results[i].kind = queue::PreEnqueueResult::Kind::kGated;
      results[i].plugin = *gate;
      results[i].message = kPreemptionUnderWay;
      continue;
    }
    const framework::ProfilePlan* plan = state_.PlanOf(*pods[i]->pod);
    if (plan == nullptr) continue;
    for (const framework::HostExtensionPoint& point : plan->pre_enqueue) {
      if (state_.IsInterested(point.plugins, pods[i]->pod->pod)) calls[{plan, &point}].push_back(i);
    }
  }
  std::vector<size_t> positions(pods.size());
  for (const auto& [call, indices] : calls)
    AskPreEnqueue(*call.first, *call.second, pods, indices, now, &positions, &results);
  return results;
}

void QueueCalls::AskPreEnqueue(const framework::ProfilePlan& plan,
                               const framework::HostExtensionPoint& point,
                               absl::Span<const queue::QueuedPod* const> pods,
                               const std::vector<size_t>& indices, absl::Time now,
                               std::vector<size_t>* positions,
                               std::vector<queue::PreEnqueueResult>* results) {
  using Kind = queue::PreEnqueueResult::Kind;
  std::vector<std::string> uids;
  uids.reserve(indices.size());
  for (const size_t i : indices) uids.push_back(pods[i]->uid());
  const absl::StatusOr<v1beta1::PreEnqueueResponse> answer =
      host_calls_.PreEnqueue(plan, point, uids, now);
  const std::string no_answer =
      answer.ok() ? "" : framework::CutText(NoAnswerFrom(point.host_name, answer.status()));
  for (size_t k = 0; k < indices.size(); ++k) {
    queue::PreEnqueueResult& result = (*results)[indices[k]];
    if (result.kind == Kind::kUnavailable) continue;
    if (!answer.ok()) {
      result = {Kind::kUnavailable, "", "", point.host_name};
      parked_pods_.Add(*pods[indices[k]]->pod, point.host_name, no_answer, now);
      continue;
    }
    const v1beta1::PluginStatus& status = answer->verdicts(static_cast<int>(k));
    if (status.code() == v1beta1::CODE_SUCCESS) continue;
    // The first gating plugin in the profile is reported.
    const size_t position = point.PositionOf(status.plugin());
    if (result.kind == Kind::kGated && (*positions)[indices[k]] <= position) continue;
    (*positions)[indices[k]] = position;
    result = {Kind::kGated, status.plugin(), absl::StrJoin(status.reasons(), ", "), ""};
  }
}

void QueueCalls::UpdateSortKeys(absl::Span<const kube::PodPtr> pods, absl::Time now) {
  std::map<const framework::ProfilePlan*, std::vector<const kube::PodObject*>> by_plan;
  for (const kube::PodPtr& pod : pods) {
    const framework::ProfilePlan* plan = state_.PlanOf(*pod);
    if (plan != nullptr && !plan->sort_host.empty()) by_plan[plan].push_back(pod.get());
  }
  for (const auto& [plan, asked] : by_plan) {
    for (size_t begin = 0; begin < asked.size(); begin += kMaxSortKeys)
      UpdateSortKeysOf(*plan, absl::MakeConstSpan(asked).subspan(begin, kMaxSortKeys), now);
  }
}

void QueueCalls::UpdateSortKeysOf(const framework::ProfilePlan& plan,
                                  absl::Span<const kube::PodObject* const> pods, absl::Time now) {
  HostRecord* const host = host_calls_.UsableHost(plan.sort_host);
  if (host == nullptr) {
    auto& missing = state_.hosts[plan.sort_host].missing_sort_keys;
    for (const kube::PodObject* pod : pods) missing.insert(pod->uid());
    return;
  }
  const absl::StatusOr<v1beta1::SortKeysResponse> answer =
      host_calls_.SortKeys(plan, host, pods, now);
  for (size_t i = 0; i < pods.size(); ++i) {
    const std::string* key = answer.ok() ? &answer->keys(static_cast<int>(i)) : nullptr;
    if (key != nullptr && key->size() <= kMaxSortKeyBytes) {
      state_.queue.SetSortKey(pods[i]->uid(), *key);
    } else {
      host->missing_sort_keys.insert(pods[i]->uid());
    }
  }
}

void QueueCalls::OnHostReplaced(const std::string& name, HostRecord* host) {
  host->missing_sort_keys.clear();
  host->sort_keys_asked = absl::InfinitePast();
  state_.queue.ForEach([&](const queue::QueuedPod& pod) {
    const framework::ProfilePlan* plan = state_.PlanOf(*pod.pod);
    if (plan != nullptr && plan->sort_host == name) host->missing_sort_keys.insert(pod.uid());
  });
}

void QueueCalls::RetryMissingSortKeys(HostRecord* host, absl::Time now) {
  if (host->missing_sort_keys.empty() || now - host->sort_keys_asked < kSortKeysRetry) return;
  host->sort_keys_asked = now;
  std::vector<kube::PodPtr> missing;
  for (const std::string& uid : std::exchange(host->missing_sort_keys, {})) {
    if (const queue::QueuedPod* info = state_.queue.Find(uid)) missing.push_back(info->pod);
  }
  UpdateSortKeys(missing, now);
}

absl::Time QueueCalls::NextWakeup(const HostRecord& host) const {
  if (!host.is_here() || host.missing_sort_keys.empty()) return absl::InfiniteFuture();
  return host.sort_keys_asked + kSortKeysRetry;
}

}  // namespace outboard::scheduler
