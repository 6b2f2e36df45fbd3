#include "shim/cycle/vain_attempts.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"

namespace outboard::cycle {

using queue::Place;
using queue::QueuedPod;

void VainAttempts::Happened(const queue::ClusterEvent& event) {
  // A pod that waits is updated by its own rejection.
  if (event.resource == queue::kUnscheduledPod && event.actions != queue::kAdd) return;
  failures_.clear();
}

void VainAttempts::Renew(absl::Time now) {
  const uint64_t placements = cluster_->placements_generation();
  if (now == failed_at_ && placements == placements_) return;
  failures_.clear();
  failed_at_ = now;
  placements_ = placements;
}

std::optional<VainAttempts::Found> VainAttempts::Find(const kube::PodObject& pod) const {
  if (!pod.pod.nominated_node_name().empty()) return std::nullopt;
  Likeness likeness = likeness_of_(pod);
  if (likeness.kind.empty()) return std::nullopt;
  return Found{std::move(likeness.kind),
               likeness.amount,
               {pod.pod.creation_unix_seconds(), pod.pod.namespace_(), pod.pod.name()},
               likeness.amount_field};
}

const VainAttempts::Failure* VainAttempts::LeaderOf(const Found& found) const {
  const auto failures = failures_.find(found.kind);
  if (failures == failures_.end()) return nullptr;
  const auto leader = absl::c_find_if(failures->second, [&](const Failure& failure) {
    return failure.amount <= found.amount && failure.turn <= found.turn;
  });
  return leader == failures->second.end() ? nullptr : &*leader;
}

void VainAttempts::Failed(const std::string& uid, absl::Time now) {
  if (likeness_of_ == nullptr) return;
  Renew(now);
  const QueuedPod* const info = queue_->Find(uid);
  if (info == nullptr || info->place != Place::kUnschedulable || !info->pending_plugins.empty())
    return;
  std::optional<Found> found = Find(*info->pod);
  if (!found.has_value()) return;
  const bool by_amount =
      !found->amount_field.empty() &&
      absl::c_any_of(info->unschedulable_plugins, [&](const std::string& plugin) {
        return reads_(plugin, found->amount_field);
      });
  if (!by_amount) {
    found->amount = std::numeric_limits<int64_t>::min();
    found->turn = {std::numeric_limits<int64_t>::min(), "", ""};
  }
  if (LeaderOf(*found) != nullptr) return;
  std::vector<Failure>& failures = failures_[found->kind];
  std::erase_if(failures, [&](const Failure& other) {
    return found->amount <= other.amount && found->turn <= other.turn;
  });
  failures.push_back({found->amount, std::move(found->turn), uid});
}

bool VainAttempts::Spare(const QueuedPod& info, absl::Time now) {
  if (likeness_of_ == nullptr) return false;
  const std::string uid = info.uid();
  leader_of_.erase(uid);
  Renew(now);
  // Somebody has to have said why it waits.
  if (failures_.empty() || info.deleted || info.pod->pod.deletion_unix_seconds() != 0 ||
      info.unschedulable_count == 0 || info.consecutive_errors > 0)
    return false;
  const std::optional<Found> found = Find(*info.pod);
  if (!found.has_value()) return false;
  const Failure* const leader = LeaderOf(*found);
  const QueuedPod* const its = leader == nullptr ? nullptr : queue_->Find(leader->uid);
  // One that no host judges is moved by events, unheard.
  if (its == nullptr || its->place != Place::kUnschedulable || !its->judged) return false;
  queue::SchedulingQueue::Rejectors rejectors;
  rejectors.unschedulable = its->unschedulable_plugins;
  rejectors.post_filter = its->post_filter_plugins;
  // Before the queue has it wait: it asks.
  leader_of_[uid] = leader->uid;
  followers_[leader->uid].push_back(uid);
  queue_->AddUnschedulable(uid, std::move(rejectors), now);
  return true;
}

void VainAttempts::OnNotWaiting(const std::string& uid) {
  if (followers_.contains(uid)) released_.push_back(uid);
}

void VainAttempts::Release(absl::Time now) {
  if (released_.empty()) return;
  std::vector<std::string> uids;
  for (const std::string& leader : std::exchange(released_, {})) {
    auto followers = followers_.extract(leader);
    if (followers.empty()) continue;
    for (std::string& uid : followers.mapped()) {
      const auto its = leader_of_.find(uid);
      if (its == leader_of_.end() || its->second != leader) continue;
      leader_of_.erase(its);
      uids.push_back(std::move(uid));
    }
  }
  queue_->TryAgain(uids, now);
}

}  // namespace outboard::cycle
