#include "shim/scheduler/scheduler.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/trace_context/trace_context.h"
#include "shim/fail_point.h"
#include "shim/framework/answer_check.h"
#include "shim/framework/declared_fields.h"

namespace outboard::scheduler {
namespace {

using queue::QueuedPod;

// The interval for retrying pods that are parked although their host is here: it was slow, or its
// answer was invalid.
constexpr absl::Duration kParkedPodsRetry = absl::Seconds(1);

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, queue::QueueOptions queue_options,
                     ClusterActions* actions, Observer* observer,
                     queue::QueueObserver* queue_observer, absl::Time now)
    : hints_(&state_, &host_calls_),
      queue_calls_(&state_, &host_calls_, &preemption_, &parked_pods_),
      state_(options, queue_options, actions, observer, &queue_calls_, &hints_, queue_observer,
             now),
      parked_pods_(&state_),
      algorithm_(&state_.cluster),
      host_calls_(&state_),
      failures_(&state_, &host_calls_, &hints_, &waits_, &parked_pods_, &algorithm_),
      waits_(&state_, &host_calls_, &failures_, &binding_),
      binding_(&state_, &host_calls_, &failures_, &waits_, &events_),
      preemption_(&state_, &failures_, &waits_, &binding_),
      cycle_(&state_, &host_calls_, &algorithm_, &failures_, &waits_, &binding_, &preemption_),
      object_writes_(&state_, &host_calls_, &events_),
      events_(&state_, &hints_, &queue_calls_, &failures_, &waits_, &binding_, &preemption_) {
  if (options.skipper == nullptr) return;
  state_.skipper = options.skipper(
      &state_.cluster, &state_.queue, [this](const std::string& plugin, absl::string_view field) {
        return absl::c_any_of(state_.hosts, [&](const auto& entry) {
          return entry.second.client != nullptr &&
                 framework::DeclaresField(entry.second.client->info(), plugin, field);
        });
      });
}

// --- Configuration

void Scheduler::SetProfileNames(const std::vector<std::string>& names) {
  state_.profile_names = std::set<std::string>(names.begin(), names.end());
}

void Scheduler::ChangeProfileNames(const std::vector<std::string>& names, absl::Time now) {
  SetProfileNames(names);
  std::vector<kube::PodPtr> added;
  std::vector<std::string> removed;
  state_.cluster.ForEachPod([&](const kube::PodPtr& pod, bool assumed) {
    if (assumed || !pod->pod.node_name().empty() ||
        state_.attempts.FindByPod(pod->uid()) != nullptr)
      return;
    const bool is_queued = state_.queue.Find(pod->uid()) != nullptr;
    const bool is_ours = state_.Places(*pod);
    if (is_ours && !is_queued) added.push_back(pod);
    if (!is_ours && is_queued) removed.push_back(pod->uid());
  });
  for (const std::string& uid : removed) state_.queue.Forget(uid);
  for (const kube::PodPtr& pod : added) {
    state_.queue.Add(pod, now);
  }
  queue_calls_.UpdateSortKeys(added, now);
}

void Scheduler::SetPlan(framework::ProfilePlan plan) {
  const std::string name = plan.algorithm.name;
  state_.queue.SetWakeUpEvents(name, plan.wake_up_events);
  for (const std::string& host : plan.host_names) state_.hosts.try_emplace(host);
  state_.plans.Set(std::move(plan));
  for (auto& [host_name, host] : state_.hosts) object_writes_.FindObjectWriters(host_name, &host);
}

void Scheduler::ExpectHost(const std::string& name, absl::Time now) {
  HostRecord& host = state_.hosts[name];
  if (host.client == nullptr && host.unavailable_since == absl::InfinitePast())
    host.unavailable_since = now;
}

void Scheduler::SetHost(const std::string& name, framework::HostClient* client,
                        cache::ClusterState::Cursor cursor, absl::Time now) {
  HostRecord& host = state_.hosts[name];
  if (host.client != nullptr && host.client != client) {
    // The predecessor's messages still count; it is not asked about its attempts again. Its faults
    // do not count: the plan may have changed after it sent them.
    TakePushes(name, /*counts_faults=*/false, &host, now);
    for (const auto& [id, attempt] : state_.attempts.by_id())
      state_.cluster.EndAttempt(host.cursor, id);
  }
  host.breaker.SetLimit(state_.options.breaker_failures);
  host.breaker.Reset();
  host.client = client;
  host.cursor = cursor;
  ++host.instances;
  // The predecessor no longer serves, so it gets no more results.
  host.push_results.Clear();
  host.wants_new_session = false;
  host.unavailable_since = client == nullptr ? now : absl::InfinitePast();
  hints_.OnHostSet(&host);
  host.pushes_from = client == nullptr ? 0 : client->acknowledged_version();
  host.caches_synced.reset();
  object_writes_.FindObjectWriters(name, &host);
  waits_.ForgetConfirmations(name);
  if (client == nullptr) return;
  waits_.ReconfirmPermitWaits(name, now);
  state_.queue.HostReturned(name, now);
  // The predecessor's last messages may be lost.
  for (const auto& [profile, plan] : state_.plans.all()) {
    if (absl::c_linear_search(plan.host_names, name)) state_.queue.DelegateReset(profile, now);
  }
  // A host says when a gate of its own opens. This instance gated none of these pods.
  state_.queue.RecheckGates(
      [&](const QueuedPod& pod) {
        const framework::ProfilePlan* const plan = state_.PlanOf(*pod.pod);
        return !pod.delegated && plan != nullptr && absl::c_linear_search(plan->host_names, name);
      },
      now);
  queue_calls_.OnHostReplaced(name, &host);
}

// --- The loop

bool Scheduler::MayTakePods(absl::Time now) const {
  const bool any_ready = absl::c_any_of(
      state_.plans.all(), [&](const auto& plan) { return host_calls_.IsUsable(plan.second); });
  if (any_ready) return true;
  // For a moment, for example during a restart, pods keep their places. Parking them all would
  // write thousands of events.
  const bool all_within_grace = absl::c_all_of(state_.hosts, [&](const auto& entry) {
    const HostRecord& host = entry.second;
    return host.is_here() || now - host.unavailable_since < state_.options.host_grace;
  });
  return !state_.plans.all().empty() && !all_within_grace;
}

bool Scheduler::ScheduleOne(absl::Time now) {
  if (!MayTakePods(now)) return false;
  if (state_.skipper != nullptr) state_.skipper->Release(now);
  QueuedPod* info = state_.queue.Pop(now);
  if (info == nullptr) return false;
  OUTBOARD_FAIL_POINT(pod_popped);
  if (state_.skipper != nullptr && state_.skipper->Skip(*info, now)) {
    state_.observer->OnAttemptSkipped(*info->pod);
    return true;
  }
  auto attempt = std::make_unique<Attempt>();
  attempt->id = state_.NewAttemptId();
  attempt->info = info;
  attempt->pod = info->pod;
  attempt->plan = state_.PlanOf(*info->pod);
  attempt->began = now;
  if (attempt->plan == nullptr) {
    failures_.FailError(std::move(attempt),
                        absl::StrCat("profile not found for scheduler name \"",
                                     info->pod->pod.scheduler_name(), "\""),
                        now);
    return true;
  }
  if (info->pod->pod.deletion_unix_seconds() != 0) {
    state_.actions->RecordFailed(*info->pod, attempt->plan->algorithm.name,
                                 absl::StrCat("skip schedule deleting pod: ", info->pod->key()),
                                 now);
    VLOG(3) << "Skip schedule deleting pod " << info->pod->key();
    state_.queue.Forget(info->uid());
    return true;
  }
  VLOG(3) << "Attempting to schedule pod " << info->pod->key() << ": attempt " << attempt->id
          << ", trace " << trace_context::TraceId(info->uid());
  cycle_.Run(std::move(attempt), now);
  return true;
}

bool Scheduler::IsInAPlan(const std::string& host) const {
  return absl::c_any_of(state_.plans.all(), [&](const auto& plan) {
    return absl::c_linear_search(plan.second.host_names, host);
  });
}

void Scheduler::Tick(absl::Time now) {
  // Before parked pods return to the queue.
  parked_pods_.Report(now);
  for (auto& [name, host] : state_.hosts) {
    // After a reload no profile may use the host for which pods wait.
    if (state_.queue.counts().parked > 0 && !IsInAPlan(name)) state_.queue.HostReturned(name, now);
    if (host.client == nullptr) continue;
    TakePushes(name, /*counts_faults=*/true, &host, now);
    if (!host.is_here()) continue;
    queue_calls_.RetryMissingSortKeys(&host, now);
    if (state_.queue.counts().parked > 0 && now - host.parked_pods_checked >= kParkedPodsRetry) {
      host.parked_pods_checked = now;
      state_.queue.HostReturned(name, now);
    }
  }
  waits_.Tick(now);
  binding_.Tick(now);
  for (const auto& object : state_.cluster.TakeUnconfirmedObjects(now))
    events_.OnObjectDelete(object, now);
  state_.queue.FlushDue(now);
  hints_.SendHints(now);
  object_writes_.MarkObjectWriters(now);
  host_calls_.SendDueChanges(now);
}

absl::Time Scheduler::NextWakeup(absl::Time now) const {
  absl::Time next = std::min({waits_.NextWakeup(), binding_.NextWakeup(), state_.queue.NextWakeup(),
                              host_calls_.NextWakeup(), parked_pods_.NextWakeup()});
  if (state_.queue.counts().parked > 0) next = std::min(next, now + kParkedPodsRetry);
  for (const auto& [name, host] : state_.hosts) {
    next = std::min(next, std::max(now, queue_calls_.NextWakeup(host)));
    if ((host.client == nullptr || host.held_back()) &&
        host.unavailable_since > absl::InfinitePast() && state_.queue.HasNext()) {
      next = std::min(next, std::max(now, host.unavailable_since + state_.options.host_grace));
    }
  }
  return next;
}

// --- Messages from hosts

void Scheduler::TakePushes(const std::string& name, bool counts_faults, HostRecord* host,
                           absl::Time now) {
  for (const v1beta1::SyncResponse& push : host->client->TakePushes()) {
    const PushEnd end = TakePush(name, host, push, now);
    if (counts_faults) {
      if (!end.status.ok())
        state_.observer->OnProtocolError(name, host->client->instance(), end.status);
      host_calls_.OnHostCallEnded(name, framework::HostCall::kPush, end.status, now);
    }
    if (end.outcome != v1beta1::PushResult::OUTCOME_UNSPECIFIED)
      host->push_results.Add(push.push_id(), end.outcome, end.message);
  }
  host->pushes_from = host->client->acknowledged_version();
}

PushEnd Scheduler::TakePush(const std::string& name, HostRecord* host,
                            const v1beta1::SyncResponse& push, absl::Time now) {
  switch (push.push_case()) {
    case v1beta1::SyncResponse::kWaitDecision:
      return waits_.TakeDecision(name, push.wait_decision(), now);
    case v1beta1::SyncResponse::kGateChanged:
      return OnGateChanged(name, push.gate_changed(), now);
    case v1beta1::SyncResponse::kSortKeysChanged:
      return OnSortKeysChanged(name, push.sort_keys_changed(), now);
    case v1beta1::SyncResponse::kAck: {
      // The client passes on only invalid acknowledgements.
      PushEnd end;
      end.status = absl::InternalError(absl::StrCat(
          "The host acknowledges version ", push.ack().version(), ", which it was not sent"));
      return end;
    }
    case v1beta1::SyncResponse::kQueueHints:
      return hints_.TakeHints(name, push.queue_hints(), now);
    case v1beta1::SyncResponse::kActivate:
      return OnActivate(name, push.activate(), now);
    case v1beta1::SyncResponse::kEffect:
      return object_writes_.HandleBackgroundWrite(name, host, push, now);
    case v1beta1::SyncResponse::kResync:
      LOG(WARNING) << "Host \"" << name
                   << "\" asks for a new snapshot: " << framework::CutText(push.resync().reason());
      host->wants_new_session = true;
      return PushEnd();
    default:
      if (!std::exchange(host->sent_unknown_push, true)) {
        LOG(WARNING) << "Host \"" << name << "\": " << host->client->instance()
                     << " pushes messages of a kind that this shim does not know; ignoring them";
      }
      return PushEnd::NotApplied(v1beta1::PushResult::OUTCOME_UNKNOWN,
                                 "the shim does not know this kind of push");
  }
}

PushEnd Scheduler::OnGateChanged(const std::string& name, const v1beta1::GateChanged& change,
                                 absl::Time now) {
  // If several plugins gate a pod, it has the name of the first; all are asked when that one opens.
  const auto is_gated_by_host = [&](const QueuedPod& pod) {
    return pod.place == queue::Place::kGated && state_.Serves(name, pod.gating_plugin, *pod.pod);
  };
  if (change.all_pods()) {
    state_.queue.RecheckGates(is_gated_by_host, now);
    return PushEnd::Applied();
  }
  std::vector<std::string> uids;
  bool any_known = false;
  for (const std::string& uid : change.pod_uids()) {
    any_known = any_known || state_.IsKnown(uid);
    const QueuedPod* const pod = state_.queue.Find(uid);
    if (pod != nullptr && is_gated_by_host(*pod)) uids.push_back(uid);
  }
  state_.queue.RecheckGates(uids, now);
  return PushEnd::AboutPods(!uids.empty(), any_known);
}

PushEnd Scheduler::OnSortKeysChanged(const std::string& name,
                                     const v1beta1::SortKeysChanged& change, absl::Time now) {
  if (absl::c_none_of(state_.plans.all(),
                      [&](const auto& plan) { return plan.second.sort_host == name; })) {
    return PushEnd::Refused(
        absl::InternalError("a host pushes that sort keys changed, but it has no sort plugin"));
  }
  std::vector<kube::PodPtr> pods;
  const auto add = [&](const QueuedPod& pod) {
    const framework::ProfilePlan* const plan = state_.PlanOf(*pod.pod);
    if (plan != nullptr && plan->sort_host == name) pods.push_back(pod.pod);
  };
  bool any_known = false;
  for (const std::string& uid : change.pod_uids()) {
    any_known = any_known || state_.IsKnown(uid);
    if (const QueuedPod* pod = state_.queue.Find(uid)) add(*pod);
  }
  if (change.all_pods()) state_.queue.ForEach(add);
  queue_calls_.UpdateSortKeys(pods, now);
  return PushEnd::AboutPods(change.all_pods() || !pods.empty(), any_known);
}

PushEnd Scheduler::OnActivate(const std::string& name, const v1beta1::Activate& activate,
                              absl::Time now) {
  if (!state_.Serves(name, activate.plugin())) return PushEnd::NotServed(activate.plugin());
  std::vector<std::string> uids;
  bool any_known = false;
  bool any_queued = false;
  for (const std::string& uid : activate.pod_uids()) {
    any_known = any_known || state_.IsKnown(uid);
    const QueuedPod* const pod = state_.queue.Find(uid);
    if (pod == nullptr || !state_.Serves(name, activate.plugin(), *pod->pod)) continue;
    any_queued = true;
    // The host's information on pods that ignore events is outdated.
    if (state_.skipper == nullptr || !state_.skipper->IgnoresEvents(uid)) uids.push_back(uid);
  }
  state_.queue.Activate(uids, now, activate.plugin());
  return PushEnd::AboutPods(any_queued, any_known);
}

}  // namespace outboard::scheduler
