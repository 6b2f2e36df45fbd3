// Hosts that judge queueing hints: what they are told, and what they say.
//
// kube-scheduler judges an event in the moment when it comes; here the host's word arrives a moment
// later, and a pod may be popped in between that the woken one would have preceded. That is no
// other order than events that come a moment later make in kube-scheduler, and nothing is lost by
// it: a pod that begins to wait names the first event that its attempt may have missed, the host
// keeps events for as long as an attempt is under way, and where a host, a stream or a message
// could have been lost, whoever waits is tried.
#include <glog/logging.h>

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "shim/cycle/scheduler.h"
#include "shim/cycle/scheduler_attempt.h"

namespace outboard::cycle {
namespace {

// How often those who keep objects hear of changes at most.
constexpr absl::Duration kKeepersPeriod = absl::Milliseconds(250);

}  // namespace

v1alpha1::QueueEvent Scheduler::AboutPod(const std::string& uid) {
  v1alpha1::QueueEvent event;
  event.set_pod_uid(uid);
  return event;
}

v1alpha1::QueueEvent Scheduler::AboutNode(const std::string& name) {
  v1alpha1::QueueEvent event;
  event.set_node_name(name);
  return event;
}

v1alpha1::QueueEvent Scheduler::AboutObject(const v1alpha1::ClusterObject& object) {
  v1alpha1::QueueEvent event;
  *event.mutable_object() = kube::NameOnly(object);
  return event;
}

void Scheduler::SendChanges(Host* host, absl::Time now) {
  std::vector<v1alpha1::SyncRequest> requests = cluster_.TakeChanges(host->cursor, now);
  if (host->judges && !(host->hints.empty() && requests.size() <= 1)) {
    if (requests.empty()) requests.emplace_back().set_version(cluster_.VersionOf(host->cursor));
    if (requests.size() > 1 || host->hints.overflowed()) {
      // What was before and what is after an event cannot be told apart any more (or, with a
      // snapshot, the host forgets who waits).
      host->hints.Clear();
      host->hints_lost = true;
    } else {
      host->hints.TakeInto(queue_.EventsNeededFrom(), &requests.back());
    }
  }
  for (const v1alpha1::SyncRequest& changes : requests) host->client->SendChanges(changes);
}

void Scheduler::Announce(const queue::ClusterEvent& event, v1alpha1::QueueEvent about) {
  vain_attempts_.Happened(event);
  if (!queue_.MustTell(event)) return;
  const uint64_t number = queue_.TakeEventNumber();
  about.set_number(number);
  *about.mutable_event() = queue::ToContract(event);
  bool told = false;
  for (auto& [name, host] : hosts_) {
    if (!host.judges) continue;
    host.hints.Happened(about);
    told = true;
  }
  if (told) announced_.insert(event);
}

void Scheduler::AnnouncePlaceGivenBack(const kube::PodObject& pod) {
  Announce(queue::AssignedPodDelete(), AboutPod(pod.uid()));
}

void Scheduler::AnnounceNominationEnded(const kube::PodObject& pod) {
  // Pods of the same or a lower priority had to count it on that node.
  v1alpha1::QueueEvent about = AboutPod(pod.uid());
  about.set_max_priority(pod.pod.priority());
  Announce(queue::AssignedPodDelete(), std::move(about));
}

void Scheduler::SendHints(absl::Time now) {
  // While somebody waits, changes that are no events go out too: a later event may be about what
  // they brought, and without it there is no before.
  const queue::QueueCounts counts = queue_.counts();
  const bool anyone_waits = counts.unschedulable + counts.gated + counts.in_flight > 0;
  for (auto& [name, host] : hosts_) {
    if (!host.judges) continue;
    if (host.client->usable() && (anyone_waits || !host.hints.empty())) SendChanges(&host, now);
    if (!std::exchange(host.hints_lost, false)) continue;
    LOG(INFO) << "Host \"" << name << "\" was told too much at once to judge events: pods that "
              << "wait are tried";
    for (const auto& [profile, plan] : plans_.all()) {
      if (absl::c_linear_search(plan.host_names, name)) queue_.JudgeLost(profile, now);
    }
  }
}

void Scheduler::TellTime(absl::Time now) {
  for (auto& [name, host] : hosts_) {
    if (host.client == nullptr || !host.client->usable()) continue;
    SendChanges(&host, now);
    // One telling has to be known from the next by its acknowledgement.
    host.told_time = std::max(now, host.told_time + absl::Nanoseconds(1));
    v1alpha1::SyncRequest request;
    request.set_version(cluster_.VersionOf(host.cursor));
    request.set_time_unix_nanos(absl::ToUnixNanos(host.told_time));
    host.client->SendChanges(request);
  }
}

bool Scheduler::HostsHeardTime() const {
  return absl::c_all_of(hosts_, [](const auto& entry) {
    const HostClient* client = entry.second.client;
    return client == nullptr || !client->usable() ||
           client->acknowledged_time() >= entry.second.told_time;
  });
}

absl::Time Scheduler::NextSendToKeepers() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, host] : hosts_) {
    if (host.keeps_objects && host.client->usable() && cluster_.HasChanges(host.cursor))
      next = std::min(next, host.changes_sent + kKeepersPeriod);
  }
  return next;
}

void Scheduler::SendToKeepers(absl::Time now) {
  for (auto& [name, host] : hosts_) {
    if (!host.keeps_objects || !host.client->usable()) continue;
    TellAllListed(&host, now);
    if (now < host.changes_sent + kKeepersPeriod || !cluster_.HasChanges(host.cursor)) continue;
    host.changes_sent = now;
    SendChanges(&host, now);
  }
}

bool Scheduler::Judges(const kube::PodObject& pod, uint64_t since) {
  const ProfilePlan* const plan = PlanOf(pod);
  if (plan == nullptr) return false;
  // Each host judges for its own plugins.
  return absl::c_all_of(plan->host_names, [&](const std::string& name) {
    const Host* host = UsableHost(name);
    return host != nullptr && host->judges && since >= host->knows_events_from;
  });
}

void Scheduler::OnWaiting(const queue::QueuedPod& pod) {
  const ProfilePlan* plan = PlanOf(*pod.pod);
  if (plan == nullptr) return;
  for (const std::string& name : plan->host_names) hosts_[name].hints.Waits(pod);
}

void Scheduler::OnNotWaiting(const queue::QueuedPod& pod) {
  vain_attempts_.OnNotWaiting(pod.uid());
  const ProfilePlan* plan = PlanOf(*pod.pod);
  if (plan == nullptr) return;
  for (const std::string& name : plan->host_names) hosts_[name].hints.WaitsNoMore(pod.uid());
}

void Scheduler::TakeWakes(const Host& host, const v1alpha1::Wakes& wakes, absl::Time now) {
  std::vector<queue::SchedulingQueue::WakeUp> wake_ups;
  wake_ups.reserve(static_cast<size_t>(wakes.wakes_size()));
  for (const v1alpha1::Wake& wake : wakes.wakes()) {
    queue::SchedulingQueue::WakeUp wake_up;
    wake_up.uid = wake.uid();
    wake_up.plugin = wake.plugin();
    wake_up.number = wake.number();
    wake_up.event = queue::FromContract(wake.event());
    if (wake.number() != 0 && !announced_.contains(wake_up.event)) {
      // Its label becomes that of a metric, so it must be one of ours.
      observer_->OnProtocolError(
          host.client->info().host_instance(),
          absl::InvalidArgumentError("a Wake names an event that was never told"));
      wake_up.number = 0;
    }
    wake_ups.push_back(std::move(wake_up));
  }
  queue_.Wake(wake_ups, now);
}

}  // namespace outboard::cycle
