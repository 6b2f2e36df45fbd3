#include "shim/scheduler/queueing_hints.h"

#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shim/scheduler/host_calls.h"
#include "shim/scheduler/scheduler_state.h"

namespace outboard::scheduler {

void QueueingHintBuffer::Waits(const queue::QueuedPod& pod) {
  v1beta1::UnschedulablePod waiting;
  waiting.set_uid(pod.uid());
  for (const std::string& plugin : pod.unschedulable_plugins) waiting.add_rejected_by(plugin);
  for (const std::string& plugin : pod.pending_plugins) waiting.add_pending_by(plugin);
  if (pod.place == queue::Place::kGated) waiting.set_gated_by(pod.gating_plugin);
  waiting.set_since(pod.delegated_since);
  pods_[pod.uid()] = std::move(waiting);
}

void QueueingHintBuffer::Happened(v1beta1::QueueEvent event) {
  if (events_.size() >= kMaxEvents) {
    overflowed_ = true;
    return;
  }
  events_.push_back(std::move(event));
}

void QueueingHintBuffer::TakeInto(uint64_t events_needed_from, v1beta1::SyncRequest* request) {
  for (auto& [uid, waiting] : pods_) {
    if (waiting.has_value()) {
      *request->add_unschedulable_pods() = *std::move(waiting);
    } else {
      request->add_removed_unschedulable_pod_uids(uid);
    }
  }
  for (v1beta1::QueueEvent& event : events_) *request->add_events() = std::move(event);
  request->set_events_needed_from(events_needed_from);
  Clear();
}

void QueueingHintBuffer::Clear() {
  pods_.clear();
  events_.clear();
  overflowed_ = false;
}

v1beta1::QueueEvent QueueingHints::AboutPod(const std::string& uid) {
  v1beta1::QueueEvent event;
  event.set_pod_uid(uid);
  return event;
}

v1beta1::QueueEvent QueueingHints::AboutNode(const std::string& name) {
  v1beta1::QueueEvent event;
  event.set_node_name(name);
  return event;
}

v1beta1::QueueEvent QueueingHints::AboutObject(const v1beta1::ClusterObject& object) {
  v1beta1::QueueEvent event;
  *event.mutable_object() = kube::ReferenceTo(object);
  return event;
}

void QueueingHints::PublishEvent(const queue::ClusterEvent& event, v1beta1::QueueEvent about) {
  if (state_.skipper != nullptr) state_.skipper->Happened(event);
  if (!state_.queue.IsEventRelevant(event)) return;
  const uint64_t number = state_.queue.TakeEventNumber();
  about.set_number(number);
  *about.mutable_event() = queue::ToContract(event);
  bool published = false;
  for (auto& [name, host] : state_.hosts) {
    if (!host.evaluates_hints) continue;
    host.hints.Happened(about);
    published = true;
  }
  if (published) announced_.insert(event);
}

void QueueingHints::PublishAssumedPodDelete(const kube::PodObject& pod) {
  PublishEvent(queue::AssignedPodDelete(), AboutPod(pod.uid()));
}

void QueueingHints::PublishNominationEnded(const kube::PodObject& pod) {
  // Pods of the same or a lower priority had to count it on that node.
  v1beta1::QueueEvent about = AboutPod(pod.uid());
  about.set_max_priority(pod.pod.priority());
  PublishEvent(queue::AssignedPodDelete(), std::move(about));
}

void QueueingHints::SendHints(absl::Time now) {
  // While any pod waits, changes that are not events are sent too: a later event may be about what
  // they changed, and without them the host has no state before that event.
  const queue::QueueCounts counts = state_.queue.counts();
  const bool any_pod_waits = counts.unschedulable + counts.gated + counts.in_flight > 0;
  for (auto& [name, host] : state_.hosts) {
    if (!host.evaluates_hints) continue;
    if (host.client->usable() && !host.client->sending() &&
        (any_pod_waits || !host.hints.empty())) {
      host_calls_.SendChanges(&host, now);
    }
    if (!std::exchange(host.hints_lost, false)) continue;
    LOG(INFO) << "Host \"" << name << "\": event buffer overflowed; retrying all unschedulable "
              << "pods";
    for (const auto& [profile, plan] : state_.plans.all()) {
      if (absl::c_linear_search(plan.host_names, name)) state_.queue.DelegateReset(profile, now);
    }
  }
}

PushEnd QueueingHints::TakeHints(const std::string& host_name, const v1beta1::QueueHints& hints,
                                 absl::Time now) {
  PushEnd refused;
  bool any_known = false;
  std::vector<queue::SchedulingQueue::Hint> usable;
  usable.reserve(static_cast<size_t>(hints.hints_size()));
  for (const v1beta1::QueueHint& given : hints.hints()) {
    const queue::QueuedPod* const pod = state_.queue.Find(given.uid());
    const bool serves = pod != nullptr ? state_.Serves(host_name, given.plugin(), *pod->pod)
                                       : state_.Serves(host_name, given.plugin());
    if (!serves) {
      refused = PushEnd::NotServed(given.plugin());
      continue;
    }
    queue::SchedulingQueue::Hint hint;
    hint.uid = given.uid();
    hint.plugin = given.plugin();
    hint.number = given.number();
    hint.event = queue::FromContract(given.event());
    if (given.number() != 0 && !announced_.contains(hint.event)) {
      // The event's label becomes the label of a metric, so it must be one of ours.
      refused = PushEnd::Refused(absl::InternalError("a hint names an event that was not sent"));
      hint.number = 0;
    }
    any_known = any_known || state_.IsKnown(given.uid());
    if (pod != nullptr) usable.push_back(std::move(hint));
  }
  state_.queue.ApplyHints(usable, now);
  return refused.status.ok() ? PushEnd::AboutPods(!usable.empty(), any_known) : refused;
}

void QueueingHints::OnHostSet(HostRecord* host) {
  host->hints.Clear();
  host->hints_lost = false;
  host->evaluates_hints =
      host->client != nullptr && !state_.options.single_attempt &&
      framework::HasCapability(host->client->info(), v1beta1::CAPABILITY_QUEUEING_HINTS);
  host->knows_events_from = state_.queue.next_event_number();
}

bool QueueingHints::EvaluatesEvents(const kube::PodObject& pod, uint64_t since) {
  const framework::ProfilePlan* const plan = state_.PlanOf(pod);
  if (plan == nullptr) return false;
  // Each host evaluates the hints of its own plugins.
  return absl::c_all_of(plan->host_names, [&](const std::string& name) {
    const HostRecord* host = host_calls_.UsableHost(name);
    return host != nullptr && host->evaluates_hints && since >= host->knows_events_from;
  });
}

void QueueingHints::OnWaiting(const queue::QueuedPod& pod) {
  const framework::ProfilePlan* plan = state_.PlanOf(*pod.pod);
  if (plan == nullptr) return;
  for (const std::string& name : plan->host_names) state_.hosts[name].hints.Waits(pod);
}

void QueueingHints::OnNotWaiting(const queue::QueuedPod& pod) {
  if (state_.skipper != nullptr) state_.skipper->OnNotWaiting(pod.uid());
  const framework::ProfilePlan* plan = state_.PlanOf(*pod.pod);
  if (plan == nullptr) return;
  for (const std::string& name : plan->host_names) state_.hosts[name].hints.WaitsNoMore(pod.uid());
}

}  // namespace outboard::scheduler
